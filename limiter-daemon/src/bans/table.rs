//! The storage of bans: the kernel's maps, or plain memory in tests.

use limiter_common::ban::{Ban, BanKey, LENGTH_WORDS};
use limiter_datapath::kernel::{BanMaps, DatapathError};

/// Bans by prefix, including ended bans.
pub(crate) trait BanTable {
    /// Returns a number that identifies this table.
    fn id(&self) -> Result<u32, DatapathError>;

    /// Returns the most bans that the table holds.
    fn capacity(&self) -> Result<u32, DatapathError>;

    /// Returns the ban of exactly this prefix.
    fn get(&self, key: &BanKey) -> Result<Option<Ban>, DatapathError>;

    /// Inserts or replaces a prefix's ban. From then on packets are looked up by its length.
    fn insert(&self, key: BanKey, ban: Ban) -> Result<(), DatapathError>;

    /// Removes a prefix's ban; returns whether there was one.
    fn remove(&self, key: &BanKey) -> Result<bool, DatapathError>;

    /// Appends some thousand bans to `bans`, from a position or from the start. Returns where to continue; `None` at
    /// the end.
    fn read_some(
        &self,
        position: Option<u32>,
        bans: &mut Vec<(BanKey, Ban)>,
    ) -> Result<Option<u32>, DatapathError>;

    /// Restricts look-ups to these prefix lengths.
    fn keep_lengths(&self, used: [u64; LENGTH_WORDS as usize]) -> Result<(), DatapathError>;

    /// Clears the filter, so that packets from formerly banned prefixes cost no more than others.
    fn clear_filter(&self) -> Result<(), DatapathError>;

    /// Makes the counters of hits match the banned prefixes: a kill may leave some missing or left over.
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
