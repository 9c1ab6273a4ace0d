//! Keeps a thread on one CPU, and lets it come first there.

use std::io;

use anyhow::{Context as _, Result};
use nix::{
    sched::{CpuSet, sched_setaffinity},
    unistd::Pid,
};

/// Keeps the calling thread on the CPU with that number.
pub(crate) fn pin(cpu: usize) -> Result<()> {
    let mut set = CpuSet::new();
    set.set(cpu)
        .and_then(|()| sched_setaffinity(Pid::from_raw(0), &set))
        .with_context(|| format!("cannot stay on CPU {cpu}"))
}

/// Lets the calling thread run before all others that are not the kernel's own.
pub(crate) fn come_first() -> Result<()> {
    let parameters = libc::sched_param { sched_priority: 1 };
    // SAFETY: the pointer is valid for the call; 0 is the calling thread.
    let outcome = unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &raw const parameters) };
    if outcome == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error()).context("cannot come before other threads")
    }
}
