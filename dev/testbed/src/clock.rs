//! The datapath's clock.

use nix::time::{ClockId, clock_gettime};

/// Returns the nanoseconds of CLOCK_MONOTONIC, as `bpf_ktime_get_ns` does in the kernel.
///
/// # Panics
///
/// Never on Linux: CLOCK_MONOTONIC always exists, and counts from the boot on.
#[must_use]
pub fn monotonic_ns() -> u64 {
    let now = clock_gettime(ClockId::CLOCK_MONOTONIC).expect("CLOCK_MONOTONIC exists");
    let seconds = u64::try_from(now.tv_sec()).expect("CLOCK_MONOTONIC starts at zero");
    let nanoseconds = u64::try_from(now.tv_nsec()).expect("nanoseconds of a second");
    seconds * 1_000_000_000 + nanoseconds
}
