//! The clocks.

use jiff::Timestamp;

/// Returns the time of the clock that the kernel program reads, `CLOCK_MONOTONIC`, in nanoseconds.
#[must_use]
#[expect(clippy::disallowed_methods, reason = "the one place for it")]
pub fn monotonic_now() -> u64 {
    let mut now = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the pointer is to our own timespec; the clock exists on every Linux.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut now) };
    now.tv_sec.unsigned_abs() * 1_000_000_000 + now.tv_nsec.unsigned_abs()
}

/// Returns the time of day, for people.
#[must_use]
#[expect(clippy::disallowed_methods, reason = "the one place for it")]
pub fn wall_clock_now() -> Timestamp {
    Timestamp::now()
}
