//! How often the daemon looks at what costs more the more there is of it: at most for a share of
//! the time of a CPU.

use std::time::Duration;

/// How long it takes at most from one look to the next, whatever a look costs.
pub(super) const LONGEST_PAUSE: Duration = Duration::from_mins(1);

/// How long to wait after a look that took so long of a CPU, so that looks take one part in
/// `share` of the time; at least `least`.
pub(super) fn pause_after(look: Duration, share: u32, least: Duration) -> Duration {
    look.saturating_mul(share - 1).clamp(least, LONGEST_PAUSE)
}

/// What this thread has had of a CPU. On a host that is flooded a look takes much longer than
/// that: it waits for the packets.
pub(super) fn cpu_time() -> Duration {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the pointer is to a timespec of our own; the clock exists on every Linux.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    let nanoseconds = u32::try_from(time.tv_nsec).unwrap_or_default();
    Duration::new(time.tv_sec.unsigned_abs(), nanoseconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_look_takes_no_more_than_its_share() {
        for (look_ms, pause_ms) in [(0, 1_000), (5, 1_000), (30, 2_970), (5_000, 60_000)] {
            let pause = pause_after(Duration::from_millis(look_ms), 100, Duration::from_secs(1));
            assert_eq!(pause, Duration::from_millis(pause_ms), "{look_ms} ms");
        }
    }
}
