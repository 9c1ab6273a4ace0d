//! Keeps a thread on one CPU, and lets it come first there.

use std::{fs, io, path::PathBuf};

use anyhow::{Context as _, Result};
use nix::{
    sched::{CpuSet, sched_setaffinity},
    unistd::Pid,
};

/// The nice value of threads and sessions that hurry: they get 28 times the share of others.
pub(crate) const HURRY: i32 = -15;

/// The nice value of a thread that comes last.
const LAST: i32 = 19;

/// Keeps the calling thread on the CPU with that number.
pub(crate) fn pin(cpu: usize) -> Result<()> {
    let mut set = CpuSet::new();
    set.set(cpu)
        .and_then(|()| sched_setaffinity(Pid::from_raw(0), &set))
        .with_context(|| format!("cannot stay on CPU {cpu}"))
}

/// Gives a thread priority over other programs on the machine; 0 is the calling one. Other hurried
/// threads have the same priority.
pub(crate) fn hurry(thread: u32) -> Result<()> {
    nice(thread, HURRY).context("cannot hurry a thread")
}

/// Gives a thread a nice value; 0 is the calling one.
fn nice(thread: u32, value: i32) -> io::Result<()> {
    // SAFETY: takes numbers only.
    match unsafe { libc::setpriority(libc::PRIO_PROCESS, thread, value) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// A session that hurries as its threads do: the kernel shares a CPU among sessions first. It does
/// so until the value is dropped.
pub(crate) struct HurryingSession {
    file: PathBuf,
    before: String,
}

impl HurryingSession {
    /// Takes the session of a process.
    pub(crate) fn of(process: u32) -> Result<Option<Self>> {
        let file = PathBuf::from(format!("/proc/{process}/autogroup"));
        // Other kernels do not share CPUs among sessions.
        let Ok(group) = fs::read_to_string(&file) else {
            return Ok(None);
        };
        let before = group.split_whitespace().next_back().unwrap_or("0");
        fs::write(&file, HURRY.to_string())
            .with_context(|| format!("cannot set {}", file.display()))?;
        Ok(Some(Self {
            file,
            before: before.to_owned(),
        }))
    }
}

impl Drop for HurryingSession {
    fn drop(&mut self) {
        // The session may have ended with its processes.
        let _ = fs::write(&self.file, &self.before);
    }
}

/// Lets a thread run before all others that are not the kernel's own; 0 is the calling one.
pub(crate) fn come_first(thread: i32) -> Result<()> {
    schedule(thread, libc::SCHED_FIFO, 1).context("cannot let a thread come before others")
}

/// Lets the calling thread run only on an idle CPU. Its time counts as that of a low-priority
/// program, which the limiter takes for spare time.
pub(crate) fn come_last() -> Result<()> {
    nice(0, LAST).context("cannot lower a thread's priority")?;
    schedule(0, libc::SCHED_IDLE, 0).context("cannot let a thread come after others")
}

fn schedule(thread: i32, policy: i32, priority: i32) -> io::Result<()> {
    let parameters = libc::sched_param {
        sched_priority: priority,
    };
    // SAFETY: the pointer is valid for the call.
    match unsafe { libc::sched_setscheduler(thread, policy, &raw const parameters) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
