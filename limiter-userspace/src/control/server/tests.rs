use std::{future::pending, path::Path};

use nix::sys::resource::{Resource, getrlimit, setrlimit};

use super::*;
use crate::protocol::bans::BanChanges;

#[test]
fn requests_in_another_version_are_told_so() {
    assert!(matches!(
        parse(r#"{"version":3,"body":"status"}"#),
        Ok(Request::Status)
    ));
    assert!(matches!(
        parse(r#"{"version":3,"body":{"explain":{"address":"::1"}}}"#),
        Ok(Request::Explain { .. })
    ));
    let refused = |line: &str| parse(line).unwrap_err().to_string();
    assert!(refused(r#"{"version":4,"command":"unheard-of"}"#).contains("version 4"));
    assert!(refused(r#"{"version":3,"body":"unheard-of"}"#).contains("not a request"));
    assert!(refused("GET / HTTP/1.1").contains("not a request"));
}

/// Runs a test of a server: reloads take forever, and other requests wait while `looks` has no permit.
async fn serve(looks: &Arc<Semaphore>, test: impl AsyncFnOnce(&Path)) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("socket");
    let socket = ReservedSocket::take(&path).await.unwrap();
    let server = socket.listen(None).unwrap();
    let looks = Arc::clone(looks);
    let answer = move |request| {
        let looks = Arc::clone(&looks);
        async move {
            match request {
                Request::Reload => pending().await,
                Request::Detach => Answer::Detaching,
                _ => {
                    let _look = looks.acquire().await;
                    Answer::BansLifted { lifted: 1 }
                }
            }
        }
    };
    tokio::select! {
        () = server.serve(answer, || {}) => {}
        () = test(&path) => {}
    }
}

/// Sends a request; its answer comes later.
async fn send(path: &Path, request: Request) -> UnixStream {
    let mut stream = UnixStream::connect(path).await.unwrap();
    let mut line = serde_json::to_vec(&Versioned::new(request)).unwrap();
    line.push(b'\n');
    stream.write_all(&line).await.unwrap();
    stream
}

async fn answer(mut stream: UnixStream) -> String {
    let mut answer = String::new();
    let read = timeout(Duration::from_secs(30), stream.read_to_string(&mut answer));
    read.await.expect("it is answered").unwrap();
    answer
}

fn ban() -> Request {
    Request::ChangeBans(BanChanges::default())
}

#[tokio::test]
async fn those_behind_reloads_are_answered() {
    let test = async |path: &Path| {
        let mut reloads = Vec::new();
        for _ in 0..100 {
            reloads.push(send(path, Request::Reload).await);
        }
        for _ in 0..60 {
            let answer = answer(send(path, ban()).await).await;
            assert!(answer.contains("bans-lifted"), "{answer}");
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
            waiting.push(send(path, ban()).await);
        }
        let refused = answer(send(path, ban()).await).await;
        assert!(refused.contains("too many requests"), "{refused}");
        // The last resort comes first.
        let detached = answer(send(path, Request::Detach).await).await;
        assert!(detached.contains("detaching"), "{detached}");
        looks.add_permits(1);
        for stream in waiting {
            let answer = answer(stream).await;
            assert!(answer.contains("bans-lifted"), "{answer}");
        }
    };
    serve(&looks, test).await;
}
