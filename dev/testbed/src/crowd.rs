//! Many hostile clients of an HTTP server: some are silent, some slow, some send requests all the time. They
//! run without privileges.

use std::{
    io::{self, Read as _, Write as _},
    mem,
    net::{SocketAddr, TcpStream},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result};
use nix::sys::resource::{Resource, getrlimit, setrlimit};

use crate::Namespace;

/// A user without any files.
const NOBODY: libc::uid_t = 65_534;

/// The longest stay of a crowd.
const LONGEST: Duration = Duration::from_mins(5);

/// The interval between actions of idle and slow clients.
const PACE: Duration = Duration::from_millis(50);

/// The pause of a busy client before it connects again.
const PAUSE: Duration = Duration::from_millis(1);

/// The time that a busy client waits for the server.
const PATIENCE: Duration = Duration::from_secs(2);

/// The document that a crowd requests.
#[derive(Clone, Copy, Debug)]
pub struct Document {
    /// Its path.
    pub path: &'static str,
    /// The end of its content, to recognise a complete response.
    pub end: &'static str,
}

impl Document {
    /// The metrics, in OpenMetrics' format.
    pub const METRICS: Self = Self {
        path: "/metrics",
        end: "# EOF\n",
    };

    fn request(self) -> String {
        let path = self.path;
        format!(
            "GET {path} HTTP/1.1\r\nHost: localhost\r\nAccept: application/openmetrics-text\r\n\r\n"
        )
    }
}

/// The number of clients of each kind.
#[derive(Clone, Copy, Debug)]
pub struct Sizes {
    /// Clients that connect, and are silent.
    pub idle: usize,
    /// Clients that send an endless request byte by byte. Every other one sends a whole request, and reads
    /// the response byte by byte.
    pub slow: usize,
    /// Clients that request the document again as soon as they have a response.
    pub busy: usize,
}

impl Sizes {
    /// Returns the number of all clients.
    #[must_use]
    pub const fn total(&self) -> usize {
        self.idle + self.slow + self.busy
    }
}

/// The clients. They connect again whenever the server hangs up, and leave on drop.
#[derive(Debug)]
pub struct Crowd {
    state: Arc<State>,
    thread: Option<JoinHandle<Result<()>>>,
}

#[derive(Debug, Default)]
struct State {
    is_to_leave: AtomicBool,
    responses: AtomicU64,
    /// The number of clients that have connected at least once.
    arrived: AtomicUsize,
}

impl Crowd {
    /// Starts clients that connect to `server` from inside `namespace`, and request the document.
    #[must_use]
    pub fn gather(
        namespace: &Namespace,
        server: SocketAddr,
        document: Document,
        sizes: Sizes,
    ) -> Self {
        let state = Arc::new(State::default());
        let thread = {
            let (namespace, state) = (namespace.clone(), Arc::clone(&state));
            thread::spawn(move || {
                namespace.enter(|| {
                    allow_descriptors(sizes)?;
                    drop_privilege()?;
                    stay(server, document, sizes, &state);
                    Ok(())
                })
            })
        };
        Self {
            state,
            thread: Some(thread),
        }
    }

    /// Returns the number of responses to the busy clients.
    #[must_use]
    pub fn responses(&self) -> u64 {
        self.state.responses.load(Ordering::Relaxed)
    }

    /// Returns the number of clients that have connected, each counted once. The server may have hung up
    /// since.
    #[must_use]
    pub fn arrived(&self) -> usize {
        self.state.arrived.load(Ordering::Relaxed)
    }

    /// Makes all of them leave.
    pub fn disperse(mut self) -> Result<()> {
        self.state.is_to_leave.store(true, Ordering::Relaxed);
        let thread = self.thread.take().context("the crowd has left already")?;
        thread.join().ok().context("the crowd panicked")?
    }
}

impl Drop for Crowd {
    fn drop(&mut self) {
        self.state.is_to_leave.store(true, Ordering::Relaxed);
    }
}

/// Raises the limit of descriptors to one for each client.
fn allow_descriptors(sizes: Sizes) -> Result<()> {
    let (now, most) = getrlimit(Resource::RLIMIT_NOFILE)?;
    let wanted = sizes.total() as u64 + 1_024;
    if now < wanted {
        setrlimit(Resource::RLIMIT_NOFILE, wanted.min(most), most)
            .context("the crowd needs more descriptors")?;
    }
    Ok(())
}

/// Makes this thread, and the threads it starts, run as the user `nobody`.
fn drop_privilege() -> Result<()> {
    // SAFETY: it takes numbers. Unlike the C function of that name, the system call itself changes only the
    // calling thread: the other threads stay root.
    let changed = unsafe { libc::syscall(libc::SYS_setresuid, NOBODY, NOBODY, NOBODY) };
    if changed == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error()).context("cannot become nobody")
    }
}

impl State {
    fn goes_on(&self, deadline: Instant) -> bool {
        !self.is_to_leave.load(Ordering::Relaxed) && Instant::now() < deadline
    }
}

fn stay(server: SocketAddr, document: Document, sizes: Sizes, state: &State) {
    let request = document.request();
    let request = request.as_bytes();
    let deadline = Instant::now() + LONGEST;
    let goes_on = || state.goes_on(deadline);
    thread::scope(|scope| {
        for _ in 0..sizes.busy {
            scope.spawn(|| {
                let mut client = Client::default();
                while goes_on() {
                    // Errors are the server's doing.
                    let _ = be_busy(
                        &mut client,
                        server,
                        (request, document.end),
                        &goes_on,
                        state,
                    );
                    thread::sleep(PAUSE);
                }
            });
        }
        scope.spawn(|| linger(server, sizes.idle, &goes_on, state, |_, _| Ok(())));
        linger(server, sizes.slow, &goes_on, state, |index, stream| {
            dawdle(index, stream, request)
        });
    });
}

#[derive(Default)]
struct Client {
    /// `None`: it is not connected.
    stream: Option<TcpStream>,
    has_arrived: bool,
}

impl Client {
    /// Connects, in place of the former connection. The first success is counted.
    fn connect(&mut self, server: SocketAddr, state: &State) -> io::Result<&mut TcpStream> {
        self.stream = None;
        let stream = TcpStream::connect_timeout(&server, PATIENCE)?;
        if !mem::replace(&mut self.has_arrived, true) {
            state.arrived.fetch_add(1, Ordering::Relaxed);
        }
        Ok(self.stream.insert(stream))
    }

    /// Connects like [`Self::connect`], and makes the socket non-blocking, so that no action waits for the
    /// server.
    fn connect_to_linger(&mut self, server: SocketAddr, state: &State) -> io::Result<()> {
        self.connect(server, state)?.set_nonblocking(true)
    }
}

/// Holds connections, acts on each at intervals, and reopens closed ones.
fn linger(
    server: SocketAddr,
    number: usize,
    goes_on: &impl Fn() -> bool,
    state: &State,
    act: impl Fn(usize, &mut TcpStream) -> io::Result<()>,
) {
    let mut clients: Vec<Client> = Vec::new();
    while goes_on() {
        for (index, client) in clients.iter_mut().enumerate() {
            if !goes_on() {
                return;
            }
            let goes_well = match &mut client.stream {
                Some(stream) => is_open(stream) && act(index, stream).is_ok(),
                None => false,
            };
            if !goes_well {
                // The next round tries again.
                let _ = client.connect_to_linger(server, state);
            }
        }
        while clients.len() < number && goes_on() {
            let mut client = Client::default();
            let _ = client.connect_to_linger(server, state);
            clients.push(client);
        }
        thread::sleep(PACE);
    }
}

/// Returns whether the server holds the connection open.
fn is_open(stream: &TcpStream) -> bool {
    match stream.peek(&mut [0]) {
        Ok(read) => read > 0,
        Err(error) => error.kind() == io::ErrorKind::WouldBlock,
    }
}

/// Sends a byte of a request, or reads one of a response.
fn dawdle(index: usize, stream: &mut TcpStream, request: &[u8]) -> io::Result<()> {
    if index.is_multiple_of(2) {
        return stream.write_all(b"G");
    }
    match stream.read(&mut [0]) {
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => stream.write_all(request),
        read => read.map(drop),
    }
}

/// Sends request after request over one connection.
fn be_busy(
    client: &mut Client,
    server: SocketAddr,
    (request, end): (&[u8], &str),
    goes_on: &impl Fn() -> bool,
    state: &State,
) -> io::Result<()> {
    let stream = client.connect(server, state)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let mut buffer = vec![0; 1 << 16];
    while goes_on() {
        stream.write_all(request)?;
        let mut response = Vec::new();
        while !response.ends_with(end.as_bytes()) {
            match stream.read(&mut buffer)? {
                0 => return Ok(()),
                read => response.extend_from_slice(&buffer[..read]),
            }
        }
        state.responses.fetch_add(1, Ordering::Relaxed);
    }
    Ok(())
}
