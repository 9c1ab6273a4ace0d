//! The allowance of log lines for incidents: a GCRA bucket, as for limits.

use limiter_common::strategy::gcra::Gcra;

use super::event::Event;

/// The most lines at once, and then in each minute.
pub(super) const LINES_PER_MINUTE: u64 = 20;

const MINUTE_NS: u64 = 60_000_000_000;

const BUDGET: Gcra = Gcra::new(LINES_PER_MINUTE, LINES_PER_MINUTE, MINUTE_NS)
    .expect("a limit that a configuration could have");

/// The state of the allowance, and the number of incidents left out.
#[derive(Debug, Default)]
pub(super) struct Lines {
    /// When the allowance is full again, in nanoseconds of the clock: its TAT.
    full_again_ns: u64,
    /// Sources with an unlogged incident, since the last line that gave their number.
    unreported: u64,
}

impl Lines {
    /// Adds an event to `reported`, with the number of sources left out before it; returns whether there was
    /// room.
    pub(super) fn try_log(&mut self, now_ns: u64, event: Event, reported: &mut Vec<Event>) -> bool {
        let sources = self.unreported;
        let Ok(spend) = BUDGET.spend(now_ns, 1 + u64::from(sources > 0)) else {
            return false;
        };
        let Ok(full_again_ns) = spend.apply(self.full_again_ns) else {
            return false;
        };
        self.full_again_ns = full_again_ns;
        reported.push(event);
        if sources > 0 {
            reported.push(Event::More { sources });
            self.unreported = 0;
        }
        true
    }

    /// Counts sources that began an incident without a line.
    pub(super) const fn leave_out(&mut self, sources: u64) {
        self.unreported += sources;
    }
}
