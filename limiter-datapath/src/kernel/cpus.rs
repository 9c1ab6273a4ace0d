//! The number of possible CPUs.

use aya::util::nr_cpus;

/// Returns how many CPUs the kernel may ever run, for which tables are laid out; 1 if the kernel
/// does not tell. Each thread reads it from a file at its first call and remembers it.
#[must_use]
pub fn possible_cpus() -> u32 {
    nr_cpus().map_or(1, |cpus| u32::try_from(cpus).unwrap_or(u32::MAX))
}
