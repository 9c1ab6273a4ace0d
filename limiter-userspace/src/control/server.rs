//! The daemon's side of the control channel.

use std::{
    io,
    os::fd::AsFd as _,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, Instant},
};

use thiserror::Error;
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    net::{UnixListener, UnixStream},
    sync::Semaphore,
    task::spawn_blocking,
    time::{sleep, timeout},
};
use tracing::debug;

use super::{
    lock::Lock,
    operators::{Operators, OperatorsError},
    socket_file::{self, SocketFile},
};
use crate::{
    connections::Connections,
    protocol::{Answer, MAX_REQUEST, Request, VERSION, Version, Versioned},
};

/// How long a client may take to state its request and to read the answer.
const PATIENCE: Duration = Duration::from_secs(5);

/// How many clients may be sending their requests at once; the slowest give way.
const MAX_ASKING: usize = 32;

/// How many requests may be answered at once.
const MAX_ANSWERED: usize = 16;

/// How many members of the operators' group may be sending their requests at once, beside root, and
/// how many are answered at once: they cannot keep root waiting.
const MAX_OPERATORS: [usize; 2] = [8, 2];

/// How long to wait for a daemon that is about to end or to answer.
const TURN: Duration = Duration::from_secs(2);

/// How often to check meanwhile.
const PACE: Duration = Duration::from_millis(20);

/// The socket could not be created.
#[derive(Debug, Error)]
pub enum ServerError {
    /// Another daemon answers there.
    #[error(
        "another limiter is already running (it answers at {0}): stop it first, or give this \
         one a socket of its own with --socket"
    )]
    AlreadyRunning(PathBuf),
    /// Another daemon holds it but does not answer.
    #[error(
        "another limiter with the control socket {0} is starting or ending: wait for it, or give \
         this one a socket of its own with --socket"
    )]
    Taken(PathBuf),
    /// There is no such group.
    #[error(transparent)]
    Operators(#[from] OperatorsError),
    /// The system refused to let the group in.
    #[error(
        "cannot let the group '{group}' open {path}: {source}; leave `control: {{group: …}}` out, \
         or put the socket in a file system with access lists"
    )]
    Admit {
        /// The group.
        group: String,
        /// The socket.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The system refused.
    #[error("cannot listen at {path}: {source}")]
    Listen {
        /// The socket.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
}

/// A listening control socket; dropping it removes the file.
pub struct Server {
    listener: UnixListener,
    _file: SocketFile,
    /// The group that may look, besides root.
    operators: Option<Operators>,
    /// Declared last, so that it is released last.
    _lock: Lock,
}

/// A reserved path for a control socket. This value, and then the server made from it, keep others
/// away.
pub struct ReservedSocket {
    path: PathBuf,
    lock: Lock,
}

impl ReservedSocket {
    /// Reserves the path, unless another daemon holds it.
    pub async fn take(path: &Path) -> Result<Self, ServerError> {
        let refused = |source| ServerError::Listen {
            path: path.to_owned(),
            source,
        };
        socket_file::make_directory(path).map_err(refused)?;
        let began = Instant::now();
        loop {
            let lock = Lock::take(path).map_err(refused)?;
            // Even with the lock in hand: somebody may have removed the other's file.
            if UnixStream::connect(path).await.is_ok() {
                return Err(ServerError::AlreadyRunning(path.to_owned()));
            }
            if let Some(lock) = lock {
                let path = path.to_owned();
                return Ok(Self { path, lock });
            }
            if began.elapsed() > TURN {
                return Err(ServerError::Taken(path.to_owned()));
            }
            sleep(PACE).await;
        }
    }

    /// Listens there, for root, and for the members of a group who only look. Replaces a socket that
    /// nobody answers at.
    pub fn listen(self, group: Option<&str>) -> Result<Server, ServerError> {
        let Self { path, lock } = self;
        let operators = group.map(Operators::find).transpose()?;
        let bound = SocketFile::bind(&path);
        let listener = bound.and_then(|(file, listener)| {
            let listener = UnixListener::from_std(listener)?;
            Ok((file, listener))
        });
        let (file, listener) = match listener {
            Ok(listener) => listener,
            Err(source) => return Err(ServerError::Listen { path, source }),
        };
        let server = Server {
            listener,
            _file: file,
            operators,
            _lock: lock,
        };
        if let (Some(operators), Some(group)) = (operators, group) {
            let admitted = operators.admit(&path);
            admitted.map_err(|source| ServerError::Admit {
                group: group.to_owned(),
                path,
                source,
            })?;
        }
        Ok(server)
    }
}

impl Server {
    /// Answers requests, one per connection, until it is dropped. A client that is silent or does
    /// not read its answer does not delay others. Calls `detach` after it has answered that it
    /// will.
    pub async fn serve<A>(
        &self,
        answer: impl Fn(Request) -> A + Clone + Send + Sync + 'static,
        detach: impl Fn() + Clone + Send + Sync + 'static,
    ) where
        A: Future<Output = Answer> + Send + 'static,
    {
        let [asking, answered] = MAX_OPERATORS;
        let mut connections = Connections::with_reserve("the control socket", MAX_ASKING);
        let mut of_operators = Connections::new("the control socket", asking);
        let permits = Arc::new(Semaphore::new(MAX_ANSWERED));
        let permits_of_operators = Arc::new(Semaphore::new(answered));
        loop {
            let accept = async || self.listener.accept().await;
            let stream = connections.accept(accept).await;
            let asker = match self.asker(&stream) {
                Ok(asker) => asker,
                Err(error) => {
                    debug!("control connection: {error}");
                    continue;
                }
            };
            let (answer, detach) = (answer.clone(), detach.clone());
            let (connections, permits) = match asker {
                Asker::Root => (&mut connections, &permits),
                Asker::Operator => (&mut of_operators, &permits_of_operators),
            };
            let permits = Arc::clone(permits);
            connections
                .serve(async move {
                    if let Err(error) = serve_one(stream, asker, permits, answer, detach).await {
                        debug!("control connection: {error}");
                    }
                })
                .await;
        }
    }
}

/// The user that asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Asker {
    Root,
    /// A member of the operators' group, who may only look.
    Operator,
}

impl Server {
    /// Returns who has connected. The file's mode and access list allow these alone, but anybody may
    /// have changed them, or have handed a connection on.
    fn asker(&self, stream: &UnixStream) -> io::Result<Asker> {
        let peer = stream.peer_cred()?;
        if peer.uid() == 0 {
            return Ok(Asker::Root);
        }
        match self.operators {
            Some(operators) if operators.have(peer.gid(), stream.as_fd())? => Ok(Asker::Operator),
            _ => Err(io::ErrorKind::PermissionDenied.into()),
        }
    }
}

async fn serve_one<A: Future<Output = Answer> + Send + 'static>(
    mut stream: UnixStream,
    asker: Asker,
    permits: Arc<Semaphore>,
    answer: impl Fn(Request) -> A + Send + 'static,
    detach: impl Fn() + Send + 'static,
) -> io::Result<()> {
    // Bytes, not text, so that invalid UTF-8 gets an answer too.
    let mut line = Vec::new();
    timeout(
        PATIENCE,
        BufReader::new((&mut stream).take(MAX_REQUEST)).read_until(b'\n', &mut line),
    )
    .await??;
    let Ok(permit) = permits.acquire_owned().await else {
        return Ok(());
    };
    // A task of its own, which from here on does not give way to other connections.
    tokio::spawn(async move {
        // Without a timeout: a reload may take longer than `PATIENCE`.
        let answer = match parse(&String::from_utf8_lossy(&line)) {
            Ok(request) if asker == Asker::Root || request.only_looks() => answer(request).await,
            Ok(_) => Answer::Error(
                "only root may change anything, and the group under `control` may look: run as \
                 root (sudo limiter …)"
                    .to_owned(),
            ),
            Err(error) => Answer::Error(error.to_string()),
        };
        let is_to_detach = matches!(answer, Answer::Detaching);
        if let Err(error) = tell(stream, answer).await {
            debug!("control connection: {error}");
        }
        if is_to_detach {
            detach();
        }
        drop(permit);
    });
    Ok(())
}

async fn tell(mut stream: UnixStream, answer: Answer) -> io::Result<()> {
    // A policy with a million overrides takes a second.
    let line = spawn_blocking(move || {
        let mut line = serde_json::to_vec(&Versioned::new(answer))?;
        line.push(b'\n');
        Ok::<_, serde_json::Error>(line)
    });
    let line = line.await??;
    timeout(PATIENCE, stream.write_all(&line)).await?
}

/// What a client has sent cannot be answered.
#[derive(Debug, Error)]
enum RequestError {
    /// It is no request.
    #[error("not a request: {0}")]
    Syntax(#[from] serde_json::Error),
    /// It is one of another `limiter`.
    #[error(
        "the request is in version {0} of the control protocol, this daemon speaks {VERSION}: use \
         the `limiter` command that the daemon was installed with"
    )]
    Version(u32),
}

fn parse(line: &str) -> Result<Request, RequestError> {
    // Check the version first: in another one the rest may mean anything.
    let Version { version } = serde_json::from_str(line)?;
    if version != VERSION {
        return Err(RequestError::Version(version));
    }
    let request: Versioned<Request> = serde_json::from_str(line)?;
    Ok(request.body)
}

#[cfg(test)]
mod tests {
    use super::*;

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
}
