//! Pins threads to CPUs, and raises or lowers their priority.

use std::{fs, io, path::PathBuf};

use anyhow::{Context as _, Result};
use nix::{
    sched::{CpuSet, sched_setaffinity},
    unistd::Pid,
};

/// The nice value of threads and sessions that hurry. They get 28 times the share of others.
pub(crate) const HURRY: i32 = -15;

/// The nice value of a thread that comes last.
const LAST: i32 = 19;

pub(crate) fn pin(cpu: usize) -> Result<()> {
    let mut set = CpuSet::new();
    set.set(cpu)
        .and_then(|()| sched_setaffinity(Pid::from_raw(0), &set))
        .with_context(|| format!("cannot stay on CPU {cpu}"))
}

/// Lets a thread run before other programs' threads; 0 is the calling thread. It shares the CPU
/// with other threads that hurry.
pub(crate) fn hurry(thread: u32) -> Result<()> {
    nice(thread, HURRY).context("cannot hurry a thread")
}

/// Sets a thread's nice value; 0 is the calling thread.
fn nice(thread: u32, value: i32) -> io::Result<()> {
    // SAFETY: takes numbers only.
    match unsafe { libc::setpriority(libc::PRIO_PROCESS, thread, value) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// A session that hurries like its threads, because the kernel shares a CPU among sessions first.
/// Dropping the value ends that.
pub(crate) struct HurryingSession {
    file: PathBuf,
    before: String,
}

impl HurryingSession {
    /// Raises the priority of a process's session.
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

/// Lets a thread run before all threads except the kernel's own; 0 is the calling thread.
pub(crate) fn come_first(thread: i32) -> Result<()> {
    schedule(thread, libc::SCHED_FIFO, 1).context("cannot let a thread come before others")
}

/// Lets the calling thread run only while no other thread wants to. Its time counts as low-priority
/// time, which the limiter treats as idle.
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
