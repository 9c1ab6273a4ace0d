//! Sieves over plain memory.

use std::{cell::RefCell, iter::repeat_with};

use limiter_common::{
    address::Address,
    decide::Sieves,
    policy::Tables,
    sieve::{CONTENDED, Entry, LIST, PRESSURES, Pressure, Shard, SieveTraffic, Word, score},
};
use limiter_policy::policy::SieveSizes;

use crate::SieveMemory;

/// The sieves of a policy, with their pressures and counters.
#[derive(Debug)]
pub struct MemorySieves {
    entries: Vec<Entry>,
    heads: Vec<Word>,
    shards: Vec<Shard>,
    pressures: Vec<Pressure>,
    traffic: RefCell<Vec<SieveTraffic>>,
}

/// No sieves.
impl Default for MemorySieves {
    fn default() -> Self {
        Self::new(SieveSizes::default())
    }
}

impl MemorySieves {
    /// Makes empty sieves of these sizes, under no pressure.
    #[must_use]
    pub fn new(sizes: SieveSizes) -> Self {
        fn some<T: Default>(count: u32) -> Vec<T> {
            repeat_with(T::default).take(count as usize).collect()
        }
        Self {
            entries: some(sizes.entries),
            heads: some(sizes.heads),
            shards: some(sizes.shards),
            pressures: some(PRESSURES),
            traffic: RefCell::new(some(PRESSURES)),
        }
    }

    /// Sets the pressure at an index.
    pub fn set_pressure(&mut self, index: u32, pressure: Pressure) {
        if let Some(there) = self.pressures.get_mut(index as usize) {
            *there = pressure;
        }
    }

    /// The counters at an index.
    #[must_use]
    pub fn traffic(&self, index: u32) -> SieveTraffic {
        let traffic = self.traffic.borrow();
        traffic.get(index as usize).copied().unwrap_or_default()
    }

    /// The sieves' memory.
    #[must_use]
    pub fn memory(&self) -> SieveMemory<'_> {
        SieveMemory {
            entries: &self.entries,
            heads: &self.heads,
            shards: &self.shards,
        }
    }
}

impl Sieves for MemorySieves {
    fn pressure(&self, index: u32, now_ns: u64) -> u32 {
        let pressure = self.pressures.get(index as usize);
        pressure.map_or(0, |pressure| pressure.at(now_ns))
    }

    fn count(&self, index: u32, change: impl FnOnce(&mut SieveTraffic)) {
        if let Some(traffic) = self.traffic.borrow_mut().get_mut(index as usize) {
            change(traffic);
        }
    }

    fn score<T: Tables>(&self, tables: &T, sieve: u32, source: &Address, now_ns: u64) -> u32 {
        let hash_key = &tables.features().hash_key;
        match tables.sieve(sieve) {
            Some(sieve) => {
                let key = sieve.key(source);
                score(&self.memory(), sieve, hash_key, &key, now_ns)
            }
            None => LIST | CONTENDED,
        }
    }
}
