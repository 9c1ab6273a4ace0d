//! Where bans are kept: the kernel's maps, or in tests plain memory.

use limiter_common::ban::{Ban, BanKey, LENGTH_WORDS};
use limiter_datapath::kernel::{BanMaps, DatapathError};

/// Bans by prefix, also those that have ended.
pub(in crate::daemon) trait BanTable {
    /// Another table has another number.
    fn id(&self) -> Result<u32, DatapathError>;

    /// How many bans there may be.
    fn capacity(&self) -> Result<u32, DatapathError>;

    /// The ban of a prefix itself.
    fn get(&self, key: &BanKey) -> Result<Option<Ban>, DatapathError>;

    /// Bans a prefix, in place of a ban that it has. From then on its length is looked for.
    fn insert(&self, key: BanKey, ban: Ban) -> Result<(), DatapathError>;

    /// Removes the ban of a prefix; returns whether there was one.
    fn remove(&self, key: &BanKey) -> Result<bool, DatapathError>;

    /// Adds some thousand bans from a position on to `bans`; `None`: from the start. Returns where
    /// to go on; `None`: that was all.
    fn read_some(
        &self,
        position: Option<u32>,
        bans: &mut Vec<(BanKey, Ban)>,
    ) -> Result<Option<u32>, DatapathError>;

    /// From now on no other prefix lengths than these are looked for.
    fn keep_lengths(&self, used: [u64; LENGTH_WORDS as usize]) -> Result<(), DatapathError>;

    /// Has packets whose prefixes were banned cost what those of others do.
    fn clear_filter(&self) -> Result<(), DatapathError>;
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
}
