//! The clocks.

use jiff::Timestamp;

/// The clock that the kernel program reads, in nanoseconds: `CLOCK_MONOTONIC`.
#[must_use]
pub fn monotonic_now() -> u64 {
    let mut now = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the pointer is to a timespec of our own; the clock exists on every Linux.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut now) };
    now.tv_sec.unsigned_abs() * 1_000_000_000 + now.tv_nsec.unsigned_abs()
}

/// The time of day, for people.
#[must_use]
pub fn wall_clock_now() -> Timestamp {
    Timestamp::now()
}
