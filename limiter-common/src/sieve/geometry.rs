//! A sieve's size, and the position of an address in its memory.

use crate::{
    address::{Address, Family},
    key::{BucketKey, KeyKind},
    limit::LimitId,
    table::HashKey,
};

/// The size of a sieve.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(C)]
pub struct Geometry {
    /// The number of lists besides list 0; it is also the number of the entry list. Below `size`.
    pub list_count: u32,
    /// The capacity of the entry list and of list 0 as a power of two; below 2^28.
    pub size: u32,
    /// The number of shards as a power of two: at most a quarter of list 1's capacity.
    pub shard_bits: u32,
}

impl Geometry {
    /// The geometry of a sieve that is off.
    pub const OFF: Self = Self {
        list_count: 0,
        size: 0,
        shard_bits: 0,
    };

    /// Makes a geometry with as many shards as are useful for that many CPUs.
    ///
    /// There are no more shards than CPUs, and few enough that each has at least four entries of each list:
    /// in a list of one or two entries, each newcomer would push out the one before.
    #[must_use]
    pub const fn new(list_count: u32, size: u32, cpus: u32) -> Self {
        let smallest = size.saturating_sub(list_count.saturating_sub(1));
        let most = smallest.saturating_sub(2);
        let wanted = cpus.next_power_of_two().trailing_zeros();
        Self {
            list_count,
            size,
            shard_bits: if wanted < most { wanted } else { most },
        }
    }

    /// The number of shards.
    #[must_use]
    #[inline(always)]
    pub const fn shards(&self) -> u32 {
        1 << (self.shard_bits & 31)
    }

    /// Returns the number of entries of one shard that a list holds.
    #[must_use]
    #[inline(always)]
    pub const fn capacity(&self, list: u32) -> u32 {
        let halvings = if list == super::PERMA_BLOCK {
            0
        } else {
            self.list_count.wrapping_sub(list)
        };
        let bits = self.size.wrapping_sub(self.shard_bits);
        1 << (bits.wrapping_sub(halvings) & 31)
    }

    /// The number of a shard's first entry for an address: before it are the heads of lists, including the
    /// free list.
    #[must_use]
    #[inline(always)]
    pub const fn first_entry(&self) -> u32 {
        self.free_list().wrapping_add(1)
    }

    /// The number of the list of freed entries, after all other lists.
    #[must_use]
    #[inline(always)]
    pub const fn free_list(&self) -> u32 {
        self.list_count.wrapping_add(1)
    }

    /// The number of entries in a shard, including the heads of lists.
    #[must_use]
    #[inline(always)]
    pub const fn entries(&self) -> u32 {
        // List 0, and the others: twice the largest, less the lists that would be below the smallest.
        let largest = self.capacity(self.list_count);
        (3 * largest)
            .wrapping_sub(self.capacity(1))
            .wrapping_add(self.first_entry())
    }

    /// The number of chains in a shard, a power of two: about one per address without list 0, which is
    /// rarely full.
    #[must_use]
    #[inline(always)]
    pub const fn chains(&self) -> u32 {
        2 * self.capacity(self.list_count)
    }
}

/// The start of a sieve's memory in the arrays that all sieves share.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(C)]
pub struct Region {
    /// The index of its first entry; a shard's entries are adjacent.
    pub entries: u32,
    /// The index of its first chain's head; a shard's heads are adjacent.
    pub heads: u32,
    /// The index of its first shard.
    pub shards: u32,
}

/// The location of an address in a sieve.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChainLocation {
    /// The index of the address's shard.
    pub shard: u32,
    /// The index of the shard's first entry.
    pub entries: u32,
    /// The index of the head of the shard's first chain.
    pub heads: u32,
    /// The number of the address's chain in the shard.
    pub chain: u32,
}

impl ChainLocation {
    #[inline(always)]
    pub(super) const fn head(&self) -> u32 {
        self.heads.wrapping_add(self.chain)
    }

    /// Returns the location of an address that [`super::Sieve::key`] returned.
    #[must_use]
    #[inline(always)]
    pub const fn new(
        geometry: &Geometry,
        region: &Region,
        hash_key: &HashKey,
        key: &Address,
    ) -> Self {
        // The hash of a bucket's key, as in the table of buckets: no second secret function is needed.
        let bits = match key.family {
            Family::V4 => 32,
            Family::V6 => 128,
        };
        let kind = KeyKind::of_range(key.family, bits);
        let hash = hash_key
            .key_hash(&BucketKey::new(LimitId(0), kind, key.high, key.low))
            .0;
        let shard = (hash >> 32) as u32 & geometry.shards().wrapping_sub(1);
        #[expect(
            clippy::cast_possible_truncation,
            reason = "other bits than those above"
        )]
        let chain = hash as u32 & geometry.chains().wrapping_sub(1);
        Self {
            shard: region.shards.wrapping_add(shard),
            entries: region
                .entries
                .wrapping_add(shard.wrapping_mul(geometry.entries())),
            heads: region
                .heads
                .wrapping_add(shard.wrapping_mul(geometry.chains())),
            chain,
        }
    }
}
