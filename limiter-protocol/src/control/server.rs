//! The daemon's side of the control channel.

use std::{
    io,
    os::fd::AsFd as _,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, Instant},
};

use serde::Serialize;
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
    Call, Failure, MAX_REQUEST, Request, Response, VERSION, Version, Versioned,
    control::accepted::Connections,
};

/// How long a client may take to send its request and to read the response.
const PATIENCE: Duration = Duration::from_secs(5);

/// The most requests of root, or of members of the operators' group, at once.
struct Room {
    /// Requests that clients are still sending; the slowest give way.
    asking: usize,
    /// Requests that wait for their responses or are being answered; others are refused.
    taken: usize,
    /// Requests that are being answered.
    answered: usize,
}

const OF_ROOT: Room = Room {
    asking: 32,
    taken: 512,
    answered: 16,
};

/// Operators' room is separate, so that they cannot keep root waiting.
const OF_OPERATORS: Room = Room {
    asking: 8,
    taken: 32,
    answered: 2,
};

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
        /// The system's error.
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
    /// The group with read access, besides root.
    operators: Option<Operators>,
    /// Declared last, so that it is released last.
    _lock: Lock,
}

/// A response of any type, ready to be written.
pub struct Reply(Box<dyn FnOnce() -> serde_json::Result<Vec<u8>> + Send>);

impl Reply {
    /// Wraps the result of a request.
    pub fn to<C: Call>(result: Result<C::Response, impl Into<Failure>>) -> Self {
        Self::new(result.map_err(Into::into))
    }

    fn error(error: &RequestError) -> Self {
        Self::new(Err::<(), _>(Failure(error.to_string())))
    }

    fn new<T: Serialize + Send + 'static>(result: Result<T, Failure>) -> Self {
        Self(Box::new(|| {
            let mut line = serde_json::to_vec(&Versioned::new(Response::from(result)))?;
            line.push(b'\n');
            Ok(line)
        }))
    }
}

/// A reserved path for a control socket. This value, and then the server made from it, exclude other daemons.
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
            // Even with the lock in hand: the other daemon's lock file may have been removed.
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

    /// Listens there, for root, and for the members of a group who only read. Replaces a socket without a listener.
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
    /// Answers requests, one per connection, until it is dropped. A client that is silent or does not read its response
    /// does not delay others. Calls `detach` once the response to [`Request::Detach`] is sent.
    pub async fn serve<A>(
        &self,
        respond: impl Fn(Request) -> A + Clone + Send + Sync + 'static,
        detach: impl Fn() + Clone + Send + Sync + 'static,
    ) where
        A: Future<Output = Reply> + Send + 'static,
    {
        let mut connections = Connections::with_reserve("the control socket", OF_ROOT.asking);
        let mut of_operators = Connections::new("the control socket", OF_OPERATORS.asking);
        let (line, line_of_operators) = (Line::new(&OF_ROOT), Line::new(&OF_OPERATORS));
        loop {
            let accept = async || self.listener.accept().await;
            let (stream, _) = connections.accept(accept).await;
            let requester = match self.requester(&stream) {
                Ok(requester) => requester,
                Err(error) => {
                    debug!("control connection: {error}");
                    continue;
                }
            };
            let (respond, detach) = (respond.clone(), detach.clone());
            let (connections, line) = match requester {
                Requester::Root => (&mut connections, &line),
                Requester::Operator => (&mut of_operators, &line_of_operators),
            };
            let line = line.clone();
            connections
                .serve(async move {
                    if let Err(error) = serve_one(stream, requester, line, respond, detach).await {
                        debug!("control connection: {error}");
                    }
                })
                .await;
        }
    }
}

/// The user of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Requester {
    Root,
    /// A member of the operators' group, who may only read.
    Operator,
}

impl Server {
    /// Returns the connected user. The file's mode and access list allow only these users, but may have been changed,
    /// or a connection handed on.
    fn requester(&self, stream: &UnixStream) -> io::Result<Requester> {
        let peer = stream.peer_cred()?;
        if peer.uid() == 0 {
            return Ok(Requester::Root);
        }
        match self.operators {
            Some(operators) if operators.have(peer.gid(), stream.as_fd())? => {
                Ok(Requester::Operator)
            }
            _ => Err(io::ErrorKind::PermissionDenied.into()),
        }
    }
}

/// The requests that wait for their responses.
#[derive(Clone)]
struct Line {
    taken: Arc<Semaphore>,
    answered: Arc<Semaphore>,
}

impl Line {
    fn new(room: &Room) -> Self {
        Self {
            taken: Arc::new(Semaphore::new(room.taken)),
            answered: Arc::new(Semaphore::new(room.answered)),
        }
    }
}

/// Returns whether a request takes a turn: it reads or changes much at once. Changes of the policy take none, as they
/// wait for each other, and must not keep other requests waiting; nor does detaching, the last resort, which nothing
/// may delay.
const fn takes_a_turn(request: &Request) -> bool {
    !matches!(
        request,
        Request::Reload(_) | Request::AcceptList(_) | Request::Confirm(_) | Request::Detach(_)
    )
}

async fn serve_one<A: Future<Output = Reply> + Send + 'static>(
    mut stream: UnixStream,
    requester: Requester,
    line: Line,
    respond: impl Fn(Request) -> A + Send + 'static,
    detach: impl Fn() + Send + 'static,
) -> io::Result<()> {
    // Bytes, not text, so that invalid UTF-8 gets a response too.
    let mut bytes = Vec::new();
    timeout(
        PATIENCE,
        BufReader::new((&mut stream).take(MAX_REQUEST)).read_until(b'\n', &mut bytes),
    )
    .await??;
    let request = match parse(&String::from_utf8_lossy(&bytes)) {
        Ok(request) if requester == Requester::Root || request.is_query() => request,
        refused => {
            let error = refused.err().unwrap_or(RequestError::OnlyRoot);
            return send(stream, Reply::error(&error)).await;
        }
    };
    let permit = line.taken.try_acquire_owned().ok();
    let is_to_detach = matches!(request, Request::Detach(_));
    if permit.is_none() && !is_to_detach {
        return send(stream, Reply::error(&RequestError::Busy)).await;
    }
    // A task of its own, which from here on does not give way to other connections.
    tokio::spawn(async move {
        let turn = if takes_a_turn(&request) {
            line.answered.acquire_owned().await.ok()
        } else {
            None
        };
        // Without a timeout: a reload may take longer than `PATIENCE`.
        let reply = respond(request).await;
        if let Err(error) = send(stream, reply).await {
            debug!("control connection: {error}");
        }
        if is_to_detach {
            detach();
        }
        drop((turn, permit));
    });
    Ok(())
}

async fn send(mut stream: UnixStream, reply: Reply) -> io::Result<()> {
    // A policy with a million overrides takes a second.
    let line = spawn_blocking(reply.0).await??;
    timeout(PATIENCE, stream.write_all(&line)).await?
}

/// Why a request is not answered.
#[derive(Debug, Error)]
enum RequestError {
    /// It is no request.
    #[error("not a request: {0}")]
    Syntax(#[from] serde_json::Error),
    /// It is another version's request.
    #[error(
        "the request is in version {0} of the control protocol, this daemon speaks {VERSION}: use \
         the `limiter` command that the daemon was installed with"
    )]
    Version(u32),
    /// A member of the operators' group wants to change something.
    #[error(
        "only root may change anything, and the group under `control` may look: run as root (sudo \
         limiter …)"
    )]
    OnlyRoot,
    /// The most requests are waiting already.
    #[error("the daemon has too many requests to answer: try again in a few seconds")]
    Busy,
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
mod tests;
