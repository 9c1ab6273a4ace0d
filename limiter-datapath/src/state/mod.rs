//! The state that outlives the daemon and a reboot: debts, bans, the contents of sieves, and known
//! sources.
//!
//! A [`Snapshot`] holds the buckets in debt, and is restored into buckets of any store and size as
//! far as possible; the datapath does both. This module defines the snapshot, its bytes, and its
//! file.

mod bans;
mod debts;
mod file;
mod format;
mod known;
mod sieves;

use jiff::{SignedDuration, Timestamp};
use limiter_policy::policy::Names;

pub use self::{
    bans::{ClockReading, SavedBan, SavedHits},
    debts::{Debts, HashDebt, SetDebts, StoredDebts, TableDebt, TableDebts},
    file::{LoadError, Reason, SaveError, StateFile},
    format::FormatError,
    known::{SavedSource, SavedSources},
    sieves::SavedSieve,
};

/// The saved state at a time of day, complete enough to resume from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// The time of the snapshot, by the wall clock: the kernel's clock starts over at each boot.
    pub saved_at: Timestamp,
    /// The limits' interned ids.
    pub names: Names,
    /// The debts of buckets at that time.
    pub sets: Vec<SetDebts>,
    /// The bans.
    pub bans: Vec<SavedBan>,
    /// The hits of banned prefixes, without zeros.
    pub hits: Vec<SavedHits>,
    /// The contents of sieves.
    pub sieves: Vec<SavedSieve>,
    /// The known sources.
    pub known: SavedSources,
}

impl Snapshot {
    /// The number of buckets in debt.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.sets.iter().map(|set| set.debts.count()).sum()
    }

    /// The nanoseconds since the snapshot; 0 if the clock was set back.
    #[must_use]
    pub fn age_ns(&self, now: Timestamp) -> u64 {
        let age = now.duration_since(self.saved_at).max(SignedDuration::ZERO);
        u64::try_from(age.as_nanos()).unwrap_or(u64::MAX)
    }
}
