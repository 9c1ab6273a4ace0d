//! The pace of scans with a growing cost: they take at most a share of one CPU's time.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// The longest pause between two polls, at any cost of a poll.
pub(super) const LONGEST_PAUSE: Duration = Duration::from_mins(1);

/// Returns the pause after a poll that took `poll` of CPU time: polls then take one part in `divisor` of the time. At
/// least `least`.
pub(super) fn pause_after(poll: Duration, divisor: u32, least: Duration) -> Duration {
    poll.saturating_mul(divisor - 1).clamp(least, LONGEST_PAUSE)
}

/// Returns the CPU time of this thread. On a flooded host, a poll takes far more wall-clock time, as it competes with
/// packets.
pub(super) fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::try_from(time).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_poll_takes_no_more_than_its_part() {
        for (poll_ms, pause_ms) in [(0, 1_000), (5, 1_000), (30, 2_970), (5_000, 60_000)] {
            let pause = pause_after(Duration::from_millis(poll_ms), 100, Duration::from_secs(1));
            assert_eq!(pause, Duration::from_millis(pause_ms), "{poll_ms} ms");
        }
    }
}
