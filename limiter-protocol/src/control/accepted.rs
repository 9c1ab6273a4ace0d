//! A bounded number of connections to a listener. If there are too many, the oldest ends, and the new one is
//! served. So a client that holds all connections cannot lock out clients that send their requests at once.

use std::{
    collections::VecDeque,
    fs::File,
    future::Future,
    io,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::{
    task::{AbortHandle, yield_now},
    time::{Instant, sleep},
};
use tracing::{debug, warn};

/// The pause after a failed accept, until the system has resources again.
const PAUSE: Duration = Duration::from_millis(100);

/// The least interval between warnings of lacking resources: a client might cause them by connecting.
const WARNING_INTERVAL: Duration = Duration::from_mins(1);

/// A spare descriptor for when the process has no other left; `None`: it is in use.
static RESERVE: Mutex<Option<File>> = Mutex::new(None);

/// The accepted connections of a listener, of which it serves a bounded number at a time.
pub struct Connections {
    /// The listener's name in messages.
    listener: &'static str,
    most: usize,
    /// Oldest first.
    open: VecDeque<AbortHandle>,
    /// Whether these connections may use the reserve.
    uses_reserve: bool,
    /// When a lack of resources was logged last.
    warned_at: Option<Instant>,
}

impl Connections {
    /// Allows `most` connections to a listener that messages call `listener`.
    #[must_use]
    pub fn new(listener: &'static str, most: usize) -> Self {
        Self {
            listener,
            most,
            open: VecDeque::with_capacity(most),
            uses_reserve: false,
            warned_at: None,
        }
    }

    /// Like [`new`](Self::new), and allows one connection even if the process is out of descriptors: in place
    /// of the [reserve](hold_spare_descriptor).
    #[must_use]
    pub fn with_reserve(listener: &'static str, most: usize) -> Self {
        Self {
            uses_reserve: true,
            ..Self::new(listener, most)
        }
    }

    /// Accepts the next connection; waits and retries on errors. Logs a lack of resources, at most
    /// once a minute.
    pub async fn accept<S>(&mut self, mut accept: impl AsyncFnMut() -> io::Result<S>) -> S {
        loop {
            match accept().await {
                Ok(accepted) if hold_spare_descriptor() || self.uses_reserve => return accepted,
                // This connection has taken the reserve's descriptor, because a connection that used the
                // reserve has ended.
                Ok(accepted) => {
                    drop(accepted);
                    hold_spare_descriptor();
                    self.warn_of(&io::Error::from_raw_os_error(libc::EMFILE));
                    sleep(PAUSE).await;
                }
                // Retry with the descriptor of the reserve, which is free now.
                Err(_) if self.uses_reserve && reserve().take().is_some() => {}
                Err(error) => {
                    self.warn_of(&error);
                    sleep(PAUSE).await;
                }
            }
        }
    }

    fn warn_of(&mut self, error: &io::Error) {
        let listener = self.listener;
        if is_lack(error) && self.is_to_warn() {
            warn!("cannot accept connections to {listener}, which wait: {error}");
        } else {
            debug!("cannot accept a connection to {listener}: {error}");
        }
    }

    /// Returns whether a warning is due, and records it as given.
    fn is_to_warn(&mut self) -> bool {
        let now = Instant::now();
        let is_due = self
            .warned_at
            .is_none_or(|warned_at| now >= warned_at + WARNING_INTERVAL);
        if is_due {
            self.warned_at = Some(now);
        }
        is_due
    }

    /// Serves a connection, and closes the oldest if there are too many. Returns once the new one was polled
    /// for the first time, so that later connections cannot evict it before a request already sent is read.
    pub async fn serve(&mut self, serving: impl Future<Output = ()> + Send + 'static) {
        self.open.retain(|connection| !connection.is_finished());
        if self.open.len() >= self.most
            && let Some(oldest) = self.open.pop_front()
        {
            oldest.abort();
        }
        self.open.push_back(tokio::spawn(serving).abort_handle());
        yield_now().await;
    }
}

/// Keeps a spare descriptor with the lowest free number, since it must stay below a limit that is lowered
/// later. Returns whether there is one.
#[expect(
    clippy::must_use_candidate,
    reason = "most callers only want the descriptor held"
)]
pub fn hold_spare_descriptor() -> bool {
    let mut reserve = reserve();
    if reserve.is_none() {
        *reserve = File::open("/dev/null").ok();
    }
    reserve.is_some()
}

/// Locks the reserve. Its content is valid after each assignment, so a poisoned lock is harmless.
fn reserve() -> MutexGuard<'static, Option<File>> {
    RESERVE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns whether an accept failed for lack of resources; otherwise the client gave up.
fn is_lack(error: &io::Error) -> bool {
    let lacks = [libc::EMFILE, libc::ENFILE, libc::ENOBUFS, libc::ENOMEM];
    error
        .raw_os_error()
        .is_some_and(|code| lacks.contains(&code))
}

#[cfg(test)]
mod tests {
    use std::future::pending;

    use tokio::{
        sync::oneshot::{self, error::TryRecvError},
        time::advance,
    };

    use super::*;

    #[tokio::test]
    async fn the_oldest_gives_way() {
        let mut connections = Connections::new("a listener", 2);
        let mut open = Vec::new();
        for _ in 0..3 {
            let (is_open, closed) = oneshot::channel::<()>();
            let serving = async move {
                let _is_open = is_open;
                pending::<()>().await;
            };
            connections.serve(serving).await;
            open.push(closed);
        }
        yield_now().await;
        let closed: Vec<_> = open.iter_mut().map(oneshot::Receiver::try_recv).collect();
        let (open, ended) = (TryRecvError::Empty, TryRecvError::Closed);
        assert_eq!(closed, [Err(ended), Err(open.clone()), Err(open)]);
    }

    #[tokio::test]
    async fn each_asker_is_served_before_the_next_one_comes() {
        let mut connections = Connections::new("a listener", 1);
        let (reported, mut served) = oneshot::channel();
        connections
            .serve(async {
                // The receiver lives as long as the test.
                let _ = reported.send("a response");
            })
            .await;
        assert_eq!(served.try_recv(), Ok("a response"));
    }

    #[tokio::test]
    async fn the_reserve_is_for_the_one_that_comes_when_there_is_no_descriptor() {
        hold_spare_descriptor();
        let mut connections = Connections::with_reserve("a listener", 1);
        let mut refused = 0;
        let accepted = connections
            .accept(async || {
                if refused < 2 {
                    refused += 1;
                    return Err(io::Error::from_raw_os_error(libc::EMFILE));
                }
                Ok(refused)
            })
            .await;
        assert_eq!(accepted, 2);
        assert!(reserve().is_some(), "it is there again");
    }

    #[tokio::test(start_paused = true)]
    async fn a_lack_of_resources_is_told_once_a_minute() {
        let mut connections = Connections::new("a listener", 1);
        // Fails for fifty seconds.
        let mut failures = 500;
        connections
            .accept(async || {
                if failures > 0 {
                    failures -= 1;
                    return Err(io::Error::from_raw_os_error(libc::EMFILE));
                }
                Ok(())
            })
            .await;
        assert!(!connections.is_to_warn(), "it has warned");
        advance(100 * PAUSE).await;
        assert!(connections.is_to_warn());
        assert!(!connections.is_to_warn());
    }

    #[tokio::test(start_paused = true)]
    async fn what_a_client_does_is_not_told() {
        let mut connections = Connections::new("a listener", 1);
        let mut has_left = false;
        connections
            .accept(async || {
                if !has_left {
                    has_left = true;
                    return Err(io::Error::from_raw_os_error(libc::ECONNABORTED));
                }
                Ok(())
            })
            .await;
        assert!(connections.is_to_warn(), "it has not warned");
    }
}
