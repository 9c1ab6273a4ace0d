//! The clocks.

use jiff::Timestamp;
use rustix::time::{ClockId, clock_gettime};

/// Returns the time of the clock that the kernel program reads, `CLOCK_MONOTONIC`, in nanoseconds.
#[must_use]
#[expect(clippy::disallowed_methods, reason = "the one place for it")]
pub fn monotonic_now() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec.unsigned_abs() * 1_000_000_000 + now.tv_nsec.unsigned_abs()
}

/// Returns the time of day, for people.
#[must_use]
#[expect(clippy::disallowed_methods, reason = "the one place for it")]
pub fn wall_clock_now() -> Timestamp {
    Timestamp::now()
}
