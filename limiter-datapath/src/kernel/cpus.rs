//! The number of possible CPUs.

use aya::util::nr_cpus;

/// The number of CPUs that the kernel may ever run, which sizes the per-CPU tables; 1 if the kernel
/// does not report it. Each thread reads it from a file at its first call and caches it.
#[must_use]
pub fn possible_cpus() -> u32 {
    nr_cpus().map_or(1, |cpus| u32::try_from(cpus).unwrap_or(u32::MAX))
}
