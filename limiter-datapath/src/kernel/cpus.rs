//! How many CPUs there may be.

use aya::util::nr_cpus;

/// How many CPUs the kernel may ever run: what tables are laid out for. 1 where the kernel does not
/// tell. Each thread reads it from a file at its first call, and remembers it.
#[must_use]
pub fn possible_cpus() -> u32 {
    nr_cpus().map_or(1, |cpus| u32::try_from(cpus).unwrap_or(u32::MAX))
}
