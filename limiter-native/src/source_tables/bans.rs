//! Bans over plain memory.

use std::{cell::RefCell, collections::HashMap};

use limiter_common::{
    ban::{BanKey, BanLookup, Hits, LENGTH_WORDS},
    counters::Traffic,
};

/// Bans without a capacity, and their hits.
#[derive(Clone, Debug, Default)]
pub struct MemoryBans {
    lengths: [u64; LENGTH_WORDS as usize],
    until_ns: HashMap<BanKey, u64>,
    hits: RefCell<HashMap<BanKey, Hits>>,
}

impl MemoryBans {
    /// Bans a prefix until a time, in nanoseconds of the decision's clock. Replaces an existing
    /// ban, and keeps counting its hits.
    pub fn insert(&mut self, key: BanKey, until_ns: u64) {
        let (word, bit) = key.length_bit();
        self.lengths[word as usize] |= bit;
        self.until_ns.insert(key, until_ns);
    }

    /// Lifts the ban of a prefix, and forgets its hits; returns whether it existed.
    pub fn remove(&mut self, key: &BanKey) -> bool {
        self.hits.borrow_mut().remove(key);
        self.until_ns.remove(key).is_some()
    }

    /// The packets and bytes dropped by the bans of a prefix.
    #[must_use]
    pub fn hits(&self, key: &BanKey) -> Hits {
        self.hits.borrow().get(key).copied().unwrap_or_default()
    }

    pub(super) fn count_hit(&self, key: &BanKey, traffic: Traffic) {
        let Traffic { packets, bytes } = traffic;
        *self.hits.borrow_mut().entry(*key).or_default() += Hits { packets, bytes };
    }
}

impl BanLookup for MemoryBans {
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
