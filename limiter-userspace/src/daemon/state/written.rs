//! Whether the state file must be written again.
//!
//! A file with a million known sources has 20 MB, and sources come all the time. So what may be lost
//! for some minutes waits for them.

use std::time::Duration;

use limiter_datapath::state::{Moment, SetDebts};

/// How often to look whether the file must be written. If the daemon is killed or the power fails, no
/// more is forgiven than what was spent in that time, and what comes back in it.
pub(super) const INTERVAL: Duration = Duration::from_mins(1);

/// How long the file may lack what is not urgent: who is known, and what is in sieves.
const PATIENCE: Duration = Duration::from_mins(10);

/// How much the clocks may disagree about the time since the file was written, of which its content
/// is taken to be older.
const DISAGREEMENT: Duration = Duration::from_secs(1);

/// The last content of the file.
#[derive(Clone, Copy, Debug)]
pub(super) struct Written {
    urgent: Urgent,
    at: Moment,
}

/// What the file must have within a minute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Urgent {
    /// How often bans had changed.
    bans: u64,
    /// Whether a bucket owed more than comes back until the file is written again.
    owes: bool,
}

impl Written {
    /// Summarizes what buckets owe and how often bans have changed, at that moment.
    pub(super) fn new(sets: &[SetDebts], bans: u64, at: Moment) -> Self {
        let interval_ns = u64::try_from(INTERVAL.as_nanos()).unwrap_or(u64::MAX);
        let mut sets = sets.iter();
        let owes = sets.any(|set| set.debts.last_longer_than(interval_ns));
        Self {
            urgent: Urgent { bans, owes },
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
