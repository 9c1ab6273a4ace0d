//! Reads the server names in the first bytes of live connections and QUIC flows, and writes the policy's verdict on
//! each name to the kernel's maps. A thread with its own maps does it, so that connections get their names even while
//! the rest of the daemon waits.

mod namer;
mod quic;
mod segment;
mod status;

use std::{
    io,
    os::fd::BorrowedFd,
    sync::{
        Arc, Condvar, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use limiter_datapath::kernel::{Datapath, ServerNameMaps, SourceMaps};
use limiter_policy::policy::ServerNames;
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    io::Errno,
};
use tracing::{info, warn};

use self::namer::{ConnectionNamer, Outcomes};
pub(super) use self::status::status;
use super::{
    watchdog::{CHECK_IN_INTERVAL, ThreadWatchdog},
    worker::Worker,
};

/// How long to wait for first bytes before checking for another policy; the short pause holds while first bytes wait
/// for the end of a handshake.
const PAUSE: Duration = Duration::from_millis(50);
const SHORT_PAUSE: Duration = Duration::from_millis(2);

/// Shared between the thread and the rest of the daemon.
#[derive(Default)]
pub(crate) struct NamerHandle {
    shared: Mutex<NamingState>,
    /// Notified of a new policy, and when the daemon ends.
    changed: Condvar,
    /// The number of times that the names of open connections were written anew.
    renamed: AtomicU64,
    /// The outcomes of connections and QUIC flows since the daemon started, or since limits count by their names.
    outcomes: Mutex<Outcomes>,
}

/// Locked only to store or copy a value.
#[derive(Default)]
struct NamingState {
    is_over: bool,
    /// The policy in force; `None`: it uses no names.
    followed: Option<PolicyNames>,
    /// Whether `followed` is new to the thread.
    is_new: bool,
}

/// A policy's server names, and the maps of its connections.
#[derive(Clone)]
struct PolicyNames {
    names: Arc<ServerNames>,
    maps: Arc<ServerNameMaps>,
}

impl NamerHandle {
    /// Names connections by the policy in force from now on. Call it after each change.
    pub(crate) fn follow(&self, datapath: &Datapath) {
        let names = datapath.server_names().cloned();
        let maps = datapath.source_maps().map(SourceMaps::server_names);
        let followed = names.zip(maps).map(|(names, maps)| PolicyNames {
            names,
            maps: Arc::clone(maps),
        });
        let mut shared = self.locked();
        let is_same = match (&shared.followed, &followed) {
            (Some(old), Some(new)) => {
                Arc::ptr_eq(&old.names, &new.names) && Arc::ptr_eq(&old.maps, &new.maps)
            }
            (None, None) => true,
            _ => false,
        };
        if !is_same {
            shared.followed = followed;
            shared.is_new = true;
            self.changed.notify_one();
        }
    }

    /// The number of times that the names of open connections were written anew. Limits count them differently since
    /// then.
    pub(crate) fn renamed(&self) -> u64 {
        self.renamed.load(Ordering::Acquire)
    }

    /// Returns the outcomes of connections and QUIC flows.
    fn outcomes(&self) -> Outcomes {
        *self.outcomes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn locked(&self) -> MutexGuard<'_, NamingState> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

pub(crate) fn start(
    naming: &Arc<NamerHandle>,
    watchdog: &Arc<ThreadWatchdog>,
) -> io::Result<Worker> {
    let (working, ending) = (Arc::clone(naming), Arc::clone(naming));
    let watchdog = Arc::clone(watchdog);
    Worker::start(
        "server-names",
        move || {
            name_connections(&working, &watchdog);
            watchdog.server_names.end();
        },
        move || {
            ending.locked().is_over = true;
            ending.changed.notify_one();
        },
    )
}

/// Names connections until the daemon ends.
fn name_connections(naming: &NamerHandle, watchdog: &ThreadWatchdog) {
    let mut namer = ConnectionNamer::default();
    let mut before = None;
    // Whether the last change of policy failed and must be retried.
    let mut is_behind = false;
    loop {
        watchdog.server_names.check_in();
        let mut shared = naming.locked();
        if namer.is_idle() {
            let nothing_new = |shared: &mut NamingState| !shared.is_new && !shared.is_over;
            let waited = naming
                .changed
                .wait_timeout_while(shared, CHECK_IN_INTERVAL, nothing_new);
            (shared, _) = waited.unwrap_or_else(PoisonError::into_inner);
        }
        if shared.is_over {
            return;
        }
        let next = (shared.is_new || is_behind).then(|| shared.followed.clone());
        shared.is_new = false;
        drop(shared);
        let mut done = Ok(());
        if let Some(next) = next {
            done = namer.follow(next.map(|next| (next.names, next.maps)));
            is_behind = done.is_err();
            naming.renamed.fetch_add(1, Ordering::Release);
        }
        if let Some(readable) = namer.readable() {
            let pause = if namer.is_waiting() {
                SHORT_PAUSE
            } else {
                PAUSE
            };
            wait(readable, pause);
        }
        let error = done.and_then(|()| namer.work()).err();
        let mut outcomes = (naming.outcomes.lock()).unwrap_or_else(PoisonError::into_inner);
        *outcomes = namer.outcomes();
        drop(outcomes);
        let error = error.map(|error| error.to_string());
        if error != before {
            if let Some(error) = &error {
                warn!(
                    "connections get no server names: {error}; limits by server name do not count them"
                );
            } else {
                info!("connections get server names again");
            }
            before = error;
        }
    }
}

/// Waits until first bytes are readable. If the kernel refuses, waits for the whole pause.
fn wait(readable: BorrowedFd<'_>, pause: Duration) {
    let mut fds = [PollFd::from_borrowed_fd(readable, PollFlags::IN)];
    let timeout = Timespec::try_from(pause).ok();
    match poll(&mut fds, timeout.as_ref()) {
        Ok(_) | Err(Errno::INTR) => {}
        Err(_) => std::thread::sleep(pause),
    }
}
