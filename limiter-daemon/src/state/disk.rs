//! A thread for all access to the state file, so that a hanging disk blocks nothing else.
//!
//! Not even SIGKILL ends a thread that waits for its disk, and until the disk answers, the process keeps this
//! thread's descriptors open. So the thread has its own table of descriptors: a killed daemon lets go of its links,
//! lock and socket at once. The thread must not use a descriptor of the others, for example by logging or by waking
//! the runtime.

use std::{
    io,
    mem::MaybeUninit,
    panic::{AssertUnwindSafe, catch_unwind},
    ptr,
    sync::{
        Arc, Condvar, Mutex, PoisonError,
        mpsc::{self, Receiver, SyncSender},
    },
    thread,
    time::{Duration, Instant},
};

/// How long the disk may take.
pub(super) const PATIENCE: Duration = Duration::from_secs(5);

type Work = Box<dyn FnOnce() + Send>;

/// The thread starts with the first work, and ends some time after this is dropped.
pub(super) struct Disk {
    thread: Mutex<Option<SyncSender<Work>>>,
    turn: Arc<DiskUse>,
    patience: Duration,
}

/// Why work is not done.
#[derive(Debug)]
pub(super) enum DiskError {
    /// The disk does not answer.
    Hangs,
    /// There is no room for another thread.
    Thread(io::Error),
}

/// Whether the thread is working.
#[derive(Default)]
struct DiskUse {
    is_taken: Mutex<bool>,
    over: Condvar,
}

impl Disk {
    pub(super) fn new(patience: Duration) -> Self {
        Self {
            thread: Mutex::default(),
            turn: Arc::default(),
            patience,
        }
    }

    /// Runs work with the disk. If the disk hangs now, the work is still done later.
    pub(super) fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, DiskError> {
        let deadline = Instant::now() + self.patience;
        let left = || deadline.saturating_duration_since(Instant::now());
        let outcome = self.begin(work, left())?;
        outcome.recv_timeout(left()).map_err(|_| DiskError::Hangs)
    }

    /// Runs work that all else waits for; calls `tell` if it takes long.
    pub(super) fn wait_for<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
        tell: impl FnOnce(),
    ) -> Result<T, DiskError> {
        let outcome = self.begin(work, self.patience)?;
        outcome.recv_timeout(self.patience).or_else(|_| {
            tell();
            outcome.recv().map_err(|_| DiskError::Hangs)
        })
    }

    fn begin<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
        patience: Duration,
    ) -> Result<Receiver<T>, DiskError> {
        let mut thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner);
        let thread = match &mut *thread {
            Some(thread) => thread,
            none => none.insert(start().map_err(DiskError::Thread)?),
        };
        // Earlier work that hung may end any moment.
        self.turn.take(patience)?;
        let (reply, outcome) = mpsc::sync_channel(1);
        let turn = DiskUseGuard(Arc::clone(&self.turn));
        let work = Box::new(move || {
            let done = work();
            drop(turn);
            // If the disk hung, the caller waits no more.
            let _ = reply.send(done);
        });
        thread.send(work).map_err(|_| DiskError::Hangs)?;
        Ok(outcome)
    }
}

fn start() -> io::Result<SyncSender<Work>> {
    let (work, arriving) = mpsc::sync_channel::<Work>(1);
    let thread = thread::Builder::new().name("state".to_owned());
    thread.spawn(move || {
        keep_apart();
        for work in arriving {
            // A panic's message is on stderr.
            let _ = catch_unwind(AssertUnwindSafe(work));
        }
    })?;
    Ok(work)
}

impl DiskUse {
    /// Waits until the thread is free, and takes it.
    fn take(&self, patience: Duration) -> Result<(), DiskError> {
        let is_taken = self.is_taken.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self
            .over
            .wait_timeout_while(is_taken, patience, |taken| *taken);
        let (mut is_taken, waited) = waited.unwrap_or_else(PoisonError::into_inner);
        if waited.timed_out() {
            return Err(DiskError::Hangs);
        }
        *is_taken = true;
        drop(is_taken);
        Ok(())
    }
}

/// Exclusive use of the thread, for one piece of work.
struct DiskUseGuard(Arc<DiskUse>);

impl Drop for DiskUseGuard {
    fn drop(&mut self) {
        let DiskUse { is_taken, over } = &*self.0;
        *is_taken.lock().unwrap_or_else(PoisonError::into_inner) = false;
        over.notify_one();
    }
}

/// Gives this thread a table of descriptors with only standard input, output and error. If the system refuses, the
/// thread shares the process's table. It blocks signals, as their handlers write to a descriptor.
fn keep_apart() {
    const FIRST: libc::c_uint = 3;
    let mut signals = MaybeUninit::uninit();
    // SAFETY: the set is filled before it is read; the thread has opened nothing, and the tables of the other threads
    // stay as they are.
    unsafe {
        libc::sigfillset(signals.as_mut_ptr());
        libc::pthread_sigmask(libc::SIG_BLOCK, signals.as_ptr(), ptr::null_mut());
        libc::syscall(
            libc::SYS_close_range,
            FIRST,
            libc::c_uint::MAX,
            libc::CLOSE_RANGE_UNSHARE,
        );
    }
}

#[cfg(test)]
mod tests {
    use std::{
        fs::{self, File},
        os::fd::AsRawFd as _,
        sync::Barrier,
    };

    use super::*;

    #[test]
    fn the_thread_is_apart_from_the_process() {
        let disk = Disk::new(PATIENCE);
        let open = File::open("/dev/null").unwrap();
        let number = open.as_raw_fd();
        let found = disk.run(move || {
            // The process's directory shows the descriptors of its first thread.
            let is_open = fs::exists(format!("/proc/thread-self/fd/{number}"));
            let status = fs::read_to_string("/proc/thread-self/status");
            (is_open.unwrap(), status.unwrap())
        });
        let (is_open, status) = found.unwrap();
        assert!(!is_open);
        assert!(open.metadata().is_ok(), "the others keep theirs");
        let blocked = status.lines().find_map(|line| line.strip_prefix("SigBlk:"));
        let blocked = u64::from_str_radix(blocked.unwrap().trim(), 16).unwrap();
        let terminate = 1 << (libc::SIGTERM - 1);
        assert_eq!(blocked & terminate, terminate, "{blocked:x}");
    }

    #[test]
    fn what_hangs_is_told_and_waited_for_again() {
        let disk = Disk::new(Duration::from_millis(100));
        let barrier = Arc::new(Barrier::new(2));
        let hanging = Arc::clone(&barrier);
        let hangs = |done: Result<(), DiskError>| matches!(done, Err(DiskError::Hangs));
        let work = move || {
            hanging.wait();
        };
        assert!(hangs(disk.run(work)));
        assert!(hangs(disk.run(|| ())), "it hangs still");
        barrier.wait();
        let disk = Disk {
            patience: PATIENCE,
            ..disk
        };
        assert_eq!(disk.run(|| 7).unwrap(), 7);
    }

    #[test]
    fn what_all_else_waits_for_is_told_and_done() {
        let disk = Disk::new(Duration::from_millis(100));
        let reported = Arc::new(Barrier::new(2));
        let hanging = Arc::clone(&reported);
        let work = move || {
            hanging.wait();
            7
        };
        let done = disk.wait_for(work, || {
            reported.wait();
        });
        assert_eq!(done.unwrap(), 7);
        disk.wait_for(|| panic!("a test"), || {}).unwrap_err();
        assert_eq!(disk.run(|| 9).unwrap(), 9, "the thread goes on");
    }
}
