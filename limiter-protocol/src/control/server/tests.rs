use std::{future::pending, path::Path};

use nix::sys::resource::{Resource, getrlimit, setrlimit};

use super::*;
use crate::{BansLifted, Detach, LiftBans, Reload, StatusQuery, bans::BanChanges};

#[test]
fn requests_in_another_version_are_told_so() {
    assert!(matches!(
        parse(r#"{"version":4,"body":{"status":null}}"#),
        Ok(Request::Status(StatusQuery))
    ));
    assert!(matches!(
        parse(r#"{"version":4,"body":{"explain":{"address":"::1"}}}"#),
        Ok(Request::Explain(_))
    ));
    let refused = |line: &str| parse(line).unwrap_err().to_string();
    assert!(refused(r#"{"version":5,"command":"unheard-of"}"#).contains("version 5"));
    assert!(refused(r#"{"version":4,"body":"unheard-of"}"#).contains("not a request"));
    assert!(refused("GET / HTTP/1.1").contains("not a request"));
}

/// Runs a test of a server: reloads take forever, and other requests wait while `looks` has no permit.
async fn serve(looks: &Arc<Semaphore>, test: impl AsyncFnOnce(&Path)) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("socket");
    let socket = ReservedSocket::take(&path).await.unwrap();
    let server = socket.listen(None).unwrap();
    let looks = Arc::clone(looks);
    let respond = move |request| {
        let looks = Arc::clone(&looks);
        async move {
            match request {
                Request::Reload(_) => pending().await,
                Request::Detach(_) => Reply::to::<Detach>(Ok::<_, Failure>(())),
                _ => {
                    let _look = looks.acquire().await;
                    Reply::to::<LiftBans>(Ok::<_, Failure>(BansLifted { lifted: 1 }))
                }
            }
        }
    };
    tokio::select! {
        () = server.serve(respond, || {}) => {}
        () = test(&path) => {}
    }
}

/// Sends a request; its response comes later.
async fn request(path: &Path, request: impl Into<Request>) -> UnixStream {
    let mut stream = UnixStream::connect(path).await.unwrap();
    let mut line = serde_json::to_vec(&Versioned::new(request.into())).unwrap();
    line.push(b'\n');
    stream.write_all(&line).await.unwrap();
    stream
}

async fn read_response(mut stream: UnixStream) -> String {
    let mut response = String::new();
    let read = timeout(
        Duration::from_secs(30),
        stream.read_to_string(&mut response),
    );
    read.await.expect("it is answered").unwrap();
    response
}

#[tokio::test]
async fn those_behind_reloads_are_answered() {
    let test = async |path: &Path| {
        let mut reloads = Vec::new();
        for _ in 0..100 {
            reloads.push(request(path, Reload).await);
        }
        for _ in 0..60 {
            let response = read_response(request(path, BanChanges::default()).await).await;
            assert!(response.contains("lifted"), "{response}");
        }
        for reload in reloads {
            let read = reload.try_read(&mut [0]).map_err(|error| error.kind());
            assert_eq!(read, Err(io::ErrorKind::WouldBlock), "it waits");
        }
    };
    serve(&Arc::new(Semaphore::new(1)), test).await;
}

#[tokio::test]
async fn those_that_wait_are_answered_and_others_told_so() {
    // Both ends of each connection are here.
    let (_, most) = getrlimit(Resource::RLIMIT_NOFILE).unwrap();
    setrlimit(Resource::RLIMIT_NOFILE, most, most).unwrap();
    let looks = Arc::new(Semaphore::new(0));
    let test = async |path: &Path| {
        let mut waiting = Vec::new();
        for _ in 0..OF_ROOT.taken {
            waiting.push(request(path, BanChanges::default()).await);
        }
        let refused = read_response(request(path, BanChanges::default()).await).await;
        assert!(refused.contains("too many requests"), "{refused}");
        // The last resort comes first.
        let detached = read_response(request(path, Detach).await).await;
        assert!(detached.contains(r#"{"ok":null}"#), "{detached}");
        looks.add_permits(1);
        for stream in waiting {
            let response = read_response(stream).await;
            assert!(response.contains("lifted"), "{response}");
        }
    };
    serve(&looks, test).await;
}
