//! What outlives the daemon, and a reboot: who owes what, who is banned, and whom sieves know.
//!
//! A [`Snapshot`] is made of the buckets that owe something, and put back into buckets of any
//! store and size as far as that is possible; the datapath does both. Here are what it is, its
//! bytes, and the file that they are kept in.

mod bans;
mod debts;
mod file;
mod format;
mod sieves;

use jiff::{SignedDuration, Timestamp};
use limiter_policy::policy::Names;

pub use self::{
    bans::{Moment, SavedBan},
    debts::{Debts, HashDebt, SetDebts, StoredDebts, TableDebt, TableDebts},
    file::{LoadError, Reason, SaveError, StateFile},
    format::FormatError,
    sieves::SavedSieve,
};

/// Who owes what at a time of day, and all that it takes to go on with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// When it was, by the clock on the wall: the kernel's own begins anew with each boot.
    pub saved_at: Timestamp,
    /// The limits' interned ids.
    pub names: Names,
    /// What buckets owed then.
    pub sets: Vec<SetDebts>,
    /// Who was banned.
    pub bans: Vec<SavedBan>,
    /// Whom sieves knew.
    pub sieves: Vec<SavedSieve>,
}

impl Snapshot {
    /// How many buckets owed something.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.sets.iter().map(|set| set.debts.count()).sum()
    }

    /// How many nanoseconds have passed since; none where the clock was set back.
    #[must_use]
    pub fn age_ns(&self, now: Timestamp) -> u64 {
        let age = now.duration_since(self.saved_at).max(SignedDuration::ZERO);
        u64::try_from(age.as_nanos()).unwrap_or(u64::MAX)
    }
}
