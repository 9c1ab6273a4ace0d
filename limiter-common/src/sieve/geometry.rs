//! How large a sieve is, and where in its memory an address belongs.

use crate::{
    address::{Address, Family},
    limit::LimitId,
    owner::{BucketKey, OwnerKind},
    table::HashKey,
};

/// How large a sieve is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(C)]
pub struct Geometry {
    /// How many lists there are besides list 0; the number of the entry list. Below `size`.
    pub buckets: u32,
    /// The entry list holds two to the power of this, as does list 0; below 2^28.
    pub size: u32,
    /// There are two to the power of this many shards: at most a quarter of what list 1 holds.
    pub shard_bits: u32,
}

impl Geometry {
    /// Of a sieve that is off.
    pub const OFF: Self = Self {
        buckets: 0,
        size: 0,
        shard_bits: 0,
    };

    /// With as many shards as are useful where so many CPUs may work at once.
    ///
    /// No more than CPUs, and so few that of each list a shard has at least four: in one of one or
    /// two entries, who has just come would push out whoever is there.
    #[must_use]
    pub const fn new(buckets: u32, size: u32, cpus: u32) -> Self {
        let smallest = size.saturating_sub(buckets.saturating_sub(1));
        let most = smallest.saturating_sub(2);
        let wanted = cpus.next_power_of_two().trailing_zeros();
        Self {
            buckets,
            size,
            shard_bits: if wanted < most { wanted } else { most },
        }
    }

    /// How many shards there are.
    #[must_use]
    #[inline(always)]
    pub const fn shards(&self) -> u32 {
        1 << (self.shard_bits & 31)
    }

    /// How many entries of one shard a list holds.
    #[must_use]
    #[inline(always)]
    pub const fn capacity(&self, list: u32) -> u32 {
        let halvings = if list == super::PERMA_BLOCK {
            0
        } else {
            self.buckets.wrapping_sub(list)
        };
        let bits = self.size.wrapping_sub(self.shard_bits);
        1 << (bits.wrapping_sub(halvings) & 31)
    }

    /// The number of the first entry of a shard that can be somebody's: those before it are where
    /// lists begin, that of the free ones included.
    #[must_use]
    #[inline(always)]
    pub const fn first_entry(&self) -> u32 {
        self.free_list().wrapping_add(1)
    }

    /// The list of the entries that are nobody's any more, behind the others.
    #[must_use]
    #[inline(always)]
    pub const fn free_list(&self) -> u32 {
        self.buckets.wrapping_add(1)
    }

    /// How many entries a shard has, those included where lists begin.
    #[must_use]
    #[inline(always)]
    pub const fn entries(&self) -> u32 {
        // List 0, and the others: twice the largest without what would come below the smallest.
        let largest = self.capacity(self.buckets);
        (3 * largest)
            .wrapping_sub(self.capacity(1))
            .wrapping_add(self.first_entry())
    }

    /// How many chains a shard has, a power of two: as many as addresses, but for list 0, which is
    /// rarely full.
    #[must_use]
    #[inline(always)]
    pub const fn chains(&self) -> u32 {
        2 * self.capacity(self.buckets)
    }
}

/// Where a sieve's memory begins in the arrays that all sieves share.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(C)]
pub struct Region {
    /// Its first entry; those of a shard stand together.
    pub entries: u32,
    /// The head of its first chain; those of a shard stand together.
    pub heads: u32,
    /// Its first shard.
    pub shards: u32,
}

/// Where in a sieve an address belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The index of its shard.
    pub shard: u32,
    /// Where that shard's entries begin.
    pub entries: u32,
    /// Where the heads of that shard's chains begin.
    pub heads: u32,
    /// The number of its chain in the shard.
    pub chain: u32,
}

impl Place {
    /// The index of its chain.
    #[inline(always)]
    pub(super) const fn head(&self) -> u32 {
        self.heads.wrapping_add(self.chain)
    }

    /// The place of an address, as [`super::Sieve::key`] has it.
    #[must_use]
    #[inline(always)]
    pub const fn new(
        geometry: &Geometry,
        region: &Region,
        hash_key: &HashKey,
        key: &Address,
    ) -> Self {
        // The hash of a bucket's owner, as in the table of buckets: no other function that nobody
        // outside knows is needed.
        let bits = match key.family {
            Family::V4 => 32,
            Family::V6 => 128,
        };
        let owner = OwnerKind::of_range(key.family, bits);
        let hash = hash_key
            .place(&BucketKey::new(LimitId(0), owner, key.high, key.low))
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
