//! Decides whether the state file must be written again.
//!
//! A file with a million known sources has 20 MB, and sources come all the time. So changes that may be lost wait for
//! some minutes.

use std::time::Duration;

use limiter_datapath::state::{ClockReading, SetDebts};

/// How often to check whether the file must be written. If the daemon is killed or the power fails, buckets are
/// forgiven at most the tokens spent and refilled in that time.
pub(super) const INTERVAL: Duration = Duration::from_mins(1);

/// How long the file may lack known sources and the contents of sieves, which are not urgent.
const PATIENCE: Duration = Duration::from_mins(10);

/// The most that the clocks may disagree about the age of the file; its content is taken to be older by this.
const DISAGREEMENT: Duration = Duration::from_secs(1);

#[derive(Clone, Copy, Debug)]
pub(super) struct WriteSummary {
    urgent: UrgentChanges,
    at: ClockReading,
}

/// The changes that the file must have within a minute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct UrgentChanges {
    /// The number of changes to bans.
    bans: u64,
    /// Whether a bucket owes more than is refilled until the file is written again.
    owes: bool,
}

impl WriteSummary {
    /// Summarizes bucket debts and the number of changes to bans, at that moment.
    pub(super) fn new(sets: &[SetDebts], bans: u64, at: ClockReading) -> Self {
        let interval_ns = u64::try_from(INTERVAL.as_nanos()).unwrap_or(u64::MAX);
        let mut sets = sets.iter();
        let owes = sets.any(|set| set.debts.would_outlast(interval_ns));
        Self {
            urgent: UrgentChanges { bans, owes },
            at,
        }
    }

    /// Returns whether the file, with this content, may stay in place of a later one.
    pub(super) fn suffices(&self, later: &Self) -> bool {
        self.urgent == later.urgent
            && !later.urgent.owes
            && Duration::from_nanos(later.at.since(self.at)) < PATIENCE
            && Duration::from_nanos(later.at.disagreement(self.at)) < DISAGREEMENT
    }
}
