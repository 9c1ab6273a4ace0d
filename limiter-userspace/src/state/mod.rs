//! What outlives the daemon, and a reboot: who owes what, and whom sieves know.
//!
//! A [`Snapshot`] is made of the buckets that owe something, and put back into buckets of any
//! store and size as far as that is possible; the datapath does both. Here are what it is, its
//! bytes, and the file that they are kept in.

mod debts;
mod file;
mod format;
mod sieves;

use jiff::{SignedDuration, Timestamp};

pub(crate) use self::debts::left_of;
pub use self::{
    debts::{Debts, HashDebt, SetDebts, StoredDebts, TableDebt, TableDebts},
    file::{LoadError, SaveError, StateFile},
    format::FormatError,
    sieves::SavedSieve,
};
use crate::policy::Names;

/// Who owes what at a time of day, and all that it takes to go on with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// When it was, by the clock on the wall: the kernel's own begins anew with each boot.
    pub saved_at: Timestamp,
    /// The limits' interned ids.
    pub names: Names,
    /// What buckets owed then.
    pub sets: Vec<SetDebts>,
    /// Whom sieves knew.
    pub sieves: Vec<SavedSieve>,
}

impl Snapshot {
    /// How many buckets owed something.
    #[must_use]
    pub fn count(&self) -> u64 {
        let counts = self.sets.iter().map(|set| set.debts.stored.len() as u64);
        counts.sum()
    }

    /// How many nanoseconds have passed since; none where the clock was set back.
    #[must_use]
    pub fn age_ns(&self, now: Timestamp) -> u64 {
        let age = now.duration_since(self.saved_at).max(SignedDuration::ZERO);
        u64::try_from(age.as_nanos()).unwrap_or(u64::MAX)
    }
}
