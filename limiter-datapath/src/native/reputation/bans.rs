//! Bans over plain memory.

use std::collections::HashMap;

use limiter_common::ban::{BanKey, BanStore, LENGTH_WORDS};

/// Bans without a capacity.
#[derive(Clone, Debug, Default)]
pub struct MemoryBans {
    lengths: [u64; LENGTH_WORDS as usize],
    until_ns: HashMap<BanKey, u64>,
}

impl MemoryBans {
    /// Bans a prefix until a time, in nanoseconds of the decision's clock; replaces an existing
    /// ban.
    pub fn insert(&mut self, key: BanKey, until_ns: u64) {
        let (word, bit) = key.length_bit();
        self.lengths[word as usize] |= bit;
        self.until_ns.insert(key, until_ns);
    }

    /// Lifts the ban of a prefix; returns whether there was one.
    pub fn remove(&mut self, key: &BanKey) -> bool {
        self.until_ns.remove(key).is_some()
    }
}

impl BanStore for MemoryBans {
    fn lengths(&self, word: u32) -> u64 {
        self.lengths[word as usize]
    }

    fn may_have(&self, _key: &BanKey) -> bool {
        true
    }

    fn until(&self, key: &BanKey) -> Option<u64> {
        self.until_ns.get(key).copied()
    }
}
