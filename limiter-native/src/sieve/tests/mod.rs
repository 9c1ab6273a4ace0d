mod model;
mod properties;
mod steps;
mod threads;

use limiter_common::{
    address::Address,
    sieve::{ChainLocation, Geometry, ListedSource, Region, Sieve, score},
    table::HashKey,
};
use limiter_policy::policy::SieveSizes;

use super::SieveSnapshot;
use crate::MemorySieves;

const HASH_KEY: HashKey = HashKey {
    first: 0x0123_4567_89ab_cdef,
    second: 0xfedc_ba98_7654_3210,
};

/// A sieve of one shard, without aging and without perma-block.
const fn sieve(buckets: u32, size: u32) -> Sieve {
    Sieve {
        max_age_ns: 0,
        perma_max_age_ns: 0,
        ipv6_mask_high: u64::MAX,
        ipv6_mask_low: u64::MAX,
        perma_limit: 0,
        perma_threshold: 0,
        geometry: Geometry::new(buckets, size, 1),
        region: Region {
            entries: 0,
            heads: 0,
            shards: 0,
        },
    }
}

/// The address with a number.
fn address(number: u32) -> Address {
    if number.is_multiple_of(3) {
        Address::v6(u64::from(number).to_be_bytes(), [0; 8])
    } else {
        Address::v4(number.to_be_bytes())
    }
}

struct InMemory {
    sieve: Sieve,
    sieves: MemorySieves,
}

impl InMemory {
    fn new(sieve: Sieve) -> Self {
        Self {
            sieves: MemorySieves::new(SieveSizes::of(&[sieve])),
            sieve,
        }
    }

    /// Counts an arrival; returns the core's result.
    fn score(&self, key: &Address, now_ns: u64) -> u32 {
        score(&self.sieves.memory(), &self.sieve, &HASH_KEY, key, now_ns)
    }

    fn snapshot(&self) -> SieveSnapshot {
        self.sieves.memory().snapshot(&self.sieve)
    }

    /// Every list of every shard. No thread may be changing them.
    fn lists(&self) -> Vec<Vec<Vec<ListedSource>>> {
        let shards = self.snapshot().shards.into_iter().map(|shard| {
            assert!(shard.is_exact);
            shard.lists
        });
        shards.collect()
    }

    /// The number of an address's shard.
    fn shard(&self, key: &Address) -> usize {
        let Sieve {
            geometry, region, ..
        } = &self.sieve;
        ChainLocation::new(geometry, region, &HASH_KEY, key).shard as usize
    }
}
