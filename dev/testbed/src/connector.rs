//! Opens many TCP connections at a given rate.

use std::{
    collections::VecDeque,
    io,
    net::{IpAddr, SocketAddr},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result};
use socket2::{Domain, Socket, Type};

use crate::{
    load::{Load, Progress, SendReport},
    namespace::Namespace,
};

/// The time limit for an attempt. Below the second after which the kernel would repeat the SYN, so an attempt
/// is a single SYN.
const PATIENCE: Duration = Duration::from_millis(800);

/// Tries TCP connections from one address of a namespace to one socket address.
#[derive(Debug)]
pub struct Connector {
    namespace: Namespace,
    source: IpAddr,
    destination: SocketAddr,
    progress: Progress,
}

/// The outcome of a load of attempts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attempts {
    /// The SYNs sent, one per attempt, and the times.
    pub sent: SendReport,
    /// The number of attempts that became connections.
    pub established: u64,
}

impl Connector {
    /// Makes a connector from an address of the namespace.
    #[must_use]
    pub fn new(namespace: &Namespace, source: IpAddr, destination: SocketAddr) -> Self {
        Self {
            namespace: namespace.clone(),
            source,
            destination,
            progress: Progress::default(),
        }
    }

    /// Returns a handle to follow and end [`Connector::connect`] on another thread.
    #[must_use]
    pub fn progress(&self) -> Progress {
        self.progress.clone()
    }

    /// Tries connections at the load's rate, without waiting for the result before the next. Each attempt
    /// holds a file descriptor for 0.8 seconds, and is then given up.
    pub fn connect(&self, load: Load) -> Result<Attempts> {
        self.namespace.enter(|| {
            let mut pending = VecDeque::new();
            let mut established = 0;
            let sent = load
                .drive(&self.progress, |_| {
                    established += settle(&mut pending, Instant::now());
                    pending.push_back((Instant::now(), self.attempt()?));
                    Ok(())
                })
                .with_context(|| format!("cannot connect to {}", self.destination))?;
            // The last SYN, too, gets the whole time for a response.
            while let Some((begun, _)) = pending.front() {
                thread::sleep((*begun + PATIENCE).saturating_duration_since(Instant::now()));
                established += settle(&mut pending, Instant::now());
            }
            Ok(Attempts { sent, established })
        })
    }

    fn attempt(&self) -> io::Result<Socket> {
        let socket = Socket::new(Domain::for_address(self.destination), Type::STREAM, None)?;
        socket.set_nonblocking(true)?;
        // Reset on close, so that no port stays reserved.
        socket.set_linger(Some(Duration::ZERO))?;
        socket.bind(&SocketAddr::from((self.source, 0)).into())?;
        match socket.connect(&self.destination.into()) {
            Err(error) if error.raw_os_error() != Some(libc::EINPROGRESS) => Err(error),
            _ => Ok(socket),
        }
    }
}

/// Closes the attempts that have reached the time limit, and returns the number of connections among them.
fn settle(pending: &mut VecDeque<(Instant, Socket)>, now: Instant) -> u64 {
    let mut established = 0;
    while let Some((_, socket)) = pending.pop_front_if(|(begun, _)| now >= *begun + PATIENCE) {
        // This order also counts a connection that the server resets between the two checks.
        let connected = socket.peer_addr().is_ok() || was_reset(&socket);
        established += u64::from(connected);
    }
    established
}

/// Returns whether the server has already reset the connection, as [`crate::Listener`] does.
fn was_reset(socket: &Socket) -> bool {
    let error = socket.take_error().ok().flatten();
    error.is_some_and(|error| error.kind() == io::ErrorKind::ConnectionReset)
}
