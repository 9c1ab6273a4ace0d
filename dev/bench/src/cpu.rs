//! Keeps a thread on one CPU.

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
