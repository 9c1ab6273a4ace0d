//! The thread that reads a counting socket.

use std::{
    io,
    net::IpAddr,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
};

use anyhow::{Context as _, Result};
use socket2::Socket;

use crate::{clock::monotonic_ns, socket, softirq, tally::Tally};

/// The result of a read: the packet's source, and its bytes.
pub(crate) type ReceivedPacket = (Option<IpAddr>, usize);

/// Reads a socket on its own thread and counts, until it is finished or dropped.
#[derive(Debug)]
pub(crate) struct Counter {
    socket: Arc<Socket>,
    tally: Arc<Mutex<Tally>>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<io::Result<()>>>,
}

impl Counter {
    pub(crate) fn start(
        socket: Socket,
        mut receive: impl FnMut(&Socket) -> io::Result<ReceivedPacket> + Send + 'static,
    ) -> Result<Self> {
        socket::prepare(&socket)?;
        let socket = Arc::new(socket);
        let tally = Arc::new(Mutex::new(Tally::default()));
        let stop = Arc::new(AtomicBool::new(false));
        let thread = thread::spawn({
            let (socket, tally, stop) = (socket.clone(), tally.clone(), stop.clone());
            move || count(&socket, &tally, &stop, &mut receive)
        });
        Ok(Self {
            socket,
            tally,
            stop,
            thread: Some(thread),
        })
    }

    /// Returns the counts so far.
    pub(crate) fn so_far(&self) -> Tally {
        lock(&self.tally).clone()
    }

    /// Returns the counts, after everything that has arrived is read.
    pub(crate) fn finish(mut self) -> Result<Tally> {
        softirq::settle();
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let outcome = thread.join().ok().context("a counting thread panicked")?;
            outcome.context("cannot receive")?;
        }
        let mut tally = self.so_far();
        tally.lost = socket::drops(&self.socket)?;
        Ok(tally)
    }
}

impl Drop for Counter {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

/// Reads until told to stop and no more packets arrive.
fn count(
    socket: &Socket,
    tally: &Mutex<Tally>,
    stop: &AtomicBool,
    receive: &mut impl FnMut(&Socket) -> io::Result<ReceivedPacket>,
) -> io::Result<()> {
    loop {
        match receive(socket) {
            Ok((source, bytes)) => lock(tally).add(source, bytes, monotonic_ns()),
            Err(error) if is_timeout(&error) => {
                if stop.load(Ordering::Relaxed) {
                    return Ok(());
                }
            }
            Err(error) => return Err(error),
        }
    }
}

fn is_timeout(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut | io::ErrorKind::Interrupted
    )
}

/// Ignore poisoning: counts are plain numbers, which a panic leaves valid.
fn lock(tally: &Mutex<Tally>) -> MutexGuard<'_, Tally> {
    tally.lock().unwrap_or_else(PoisonError::into_inner)
}
