//! Whether the state file must be written again.
//!
//! A file with a million known sources has 20 MB, and sources come all the time. So what may be lost
//! for some minutes waits for them.

use std::{
    hash::{DefaultHasher, Hash as _, Hasher as _},
    time::Duration,
};

use limiter_datapath::state::{Moment, SavedBan, Snapshot};

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
    /// A hash of the bans.
    bans: u64,
    /// Whether a bucket owed more than comes back until the file is written again.
    owes: bool,
}

impl Written {
    /// Summarizes a snapshot of that moment.
    pub(super) fn new(snapshot: &Snapshot, at: Moment) -> Self {
        let interval_ns = u64::try_from(INTERVAL.as_nanos()).unwrap_or(u64::MAX);
        let mut sets = snapshot.sets.iter();
        Self {
            urgent: Urgent {
                bans: hash(&snapshot.bans, at),
                owes: sets.any(|set| set.debts.last_longer_than(interval_ns)),
            },
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

/// Returns a hash of bans, saved at a moment, which time alone does not change.
fn hash(bans: &[SavedBan], at: Moment) -> u64 {
    let mut hasher = DefaultHasher::new();
    for ban in bans {
        // As it was in the kernel's table.
        let (key, ban) = ban.restore(at);
        key.hash(&mut hasher);
        (ban.until_ns, ban.since_ns, ban.times, ban.limit, ban.text).hash(&mut hasher);
    }
    hasher.finish()
}
