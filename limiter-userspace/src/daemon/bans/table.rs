//! Where bans are kept: the kernel's maps, or plain memory in tests.

use limiter_common::ban::{Ban, BanKey, LENGTH_WORDS};
use limiter_datapath::kernel::{BanMaps, DatapathError};

/// Bans by prefix, including those that have ended.
pub(in crate::daemon) trait BanTable {
    /// Returns a number that tells this table from others.
    fn id(&self) -> Result<u32, DatapathError>;

    /// Returns how many bans there may be.
    fn capacity(&self) -> Result<u32, DatapathError>;

    /// Returns the ban of exactly this prefix.
    fn get(&self, key: &BanKey) -> Result<Option<Ban>, DatapathError>;

    /// Bans a prefix; replaces a ban that it has. From then on its length is looked for.
    fn insert(&self, key: BanKey, ban: Ban) -> Result<(), DatapathError>;

    /// Removes a prefix's ban; returns whether there was one.
    fn remove(&self, key: &BanKey) -> Result<bool, DatapathError>;

    /// Appends some thousand bans to `bans`, from a position or from the start. Returns where to
    /// continue; `None`: that was all.
    fn read_some(
        &self,
        position: Option<u32>,
        bans: &mut Vec<(BanKey, Ban)>,
    ) -> Result<Option<u32>, DatapathError>;

    /// Makes lookups use only these prefix lengths from now on.
    fn keep_lengths(&self, used: [u64; LENGTH_WORDS as usize]) -> Result<(), DatapathError>;

    /// Clears the filter, so that packets from prefixes once banned cost no more than others.
    fn clear_filter(&self) -> Result<(), DatapathError>;

    /// Counts the hits of the prefixes that have bans, and of no others: a kill may have left it
    /// otherwise.
    fn repair_hits(&self) -> Result<(), DatapathError>;
}

impl BanTable for BanMaps {
    fn id(&self) -> Result<u32, DatapathError> {
        self.id()
    }

    fn capacity(&self) -> Result<u32, DatapathError> {
        self.capacity()
    }

    fn get(&self, key: &BanKey) -> Result<Option<Ban>, DatapathError> {
        self.get(key)
    }

    fn insert(&self, key: BanKey, ban: Ban) -> Result<(), DatapathError> {
        self.insert(key, ban)
    }

    fn remove(&self, key: &BanKey) -> Result<bool, DatapathError> {
        self.remove(key)
    }

    fn read_some(
        &self,
        position: Option<u32>,
        bans: &mut Vec<(BanKey, Ban)>,
    ) -> Result<Option<u32>, DatapathError> {
        self.read_some(position, bans)
    }

    fn keep_lengths(&self, used: [u64; LENGTH_WORDS as usize]) -> Result<(), DatapathError> {
        self.keep_lengths(used)
    }

    fn clear_filter(&self) -> Result<(), DatapathError> {
        self.clear_filter()
    }

    fn repair_hits(&self) -> Result<(), DatapathError> {
        self.repair_hits()
    }
}
