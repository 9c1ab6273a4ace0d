//! The clocks of the daemon.

use jiff::Timestamp;
use rustix::time::{ClockId, clock_gettime};

/// The time of `CLOCK_MONOTONIC`, the kernel program's clock, in nanoseconds.
#[must_use]
#[expect(clippy::disallowed_methods, reason = "the one place for it")]
pub fn monotonic_now() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec.unsigned_abs() * 1_000_000_000 + now.tv_nsec.unsigned_abs()
}

/// The Unix time minus [`monotonic_now`], in nanoseconds modulo 2^64. It changes when the wall clock
/// is set, and while the machine sleeps.
#[must_use]
pub fn unix_ahead_ns() -> u64 {
    let unix = wall_clock_now().as_nanosecond();
    let ahead = unix - i128::from(monotonic_now());
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "modulo 2^64"
    )]
    let ahead = ahead as u64;
    ahead
}

/// The time of day, for people to read.
#[must_use]
#[expect(clippy::disallowed_methods, reason = "the one place for it")]
pub fn wall_clock_now() -> Timestamp {
    Timestamp::now()
}
