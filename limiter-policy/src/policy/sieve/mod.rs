//! Sieves track the busy sources, so that under pressure the busiest are dropped first.

mod percentage;
mod show;

use limiter_common::{
    limit::LimitId,
    sieve::{MAX_SIEVES, Sieve as CompiledSieve, pressure_of_limit, pressure_of_sieve},
};
use serde::{Deserialize, Serialize};

pub use self::percentage::{InvalidPercentage, Percentage};

/// A sieve: lists of addresses, sorted by activity.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sieve {
    /// Its name in files and output.
    pub name: String,
    /// The number of lists besides the perma-block list, from 1 to [`Self::MOST_BUCKETS`]. The last is the
    /// entry list; the lower a list, the busier its addresses.
    pub buckets: u8,
    /// The entry list holds two to the power of this, each lower list half as many as the next; more than
    /// `buckets`, at most [`Self::MOST_SIZE`]. 0: the sieve is off.
    pub size: u8,
    /// The percentage of the limit from which the pressure rises.
    pub percentage: Percentage,
    /// The age from which an entry is aged, in nanoseconds; 0: never.
    pub max_age_ns: u64,
    /// The addresses that are dropped first.
    pub perma_block: PermaBlock,
    /// The number of leading bits of an IPv6 source that are scored as one.
    pub ipv6_prefix: u8,
    /// The source of its pressure; `None`: each limit that uses it.
    pub pressure: Option<PressureOf>,
}

/// The rule for entering and leaving the perma-block list, list 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PermaBlock {
    /// Entries with a higher count than this,
    pub limit: u32,
    /// in this list or a lower one; 0: none.
    pub threshold: u8,
    /// The age from which an entry there is aged, in nanoseconds; 0: never.
    pub max_age_ns: u64,
}

/// The source of a sieve's own pressure.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PressureOf {
    /// The packets that this limit counts, against its rate. The limit has one bucket for the whole
    /// interface.
    Limit(String),
    /// The packets that reach each use of it, against this many per second.
    PacketsPerSecond(u64),
}

/// A use of a sieve, by a limit or by the whole interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SieveUse {
    /// The interned id of the limit with these packets; `None`: all packets.
    pub limit: Option<LimitId>,
    /// The index in [`sieves`](crate::policy::Policy::sieves) of the sieve that scores them; `None`: arrivals
    /// are only counted, for a sieve with this limit as its pressure.
    pub sieve: Option<usize>,
}

impl SieveUse {
    /// Returns the index of its pressure and counters; `None`: neither a limit nor a sieve.
    #[must_use]
    pub fn index(self) -> Option<u32> {
        match (self.limit, self.sieve) {
            (Some(limit), _) => Some(pressure_of_limit(limit)),
            (None, Some(sieve)) => Some(pressure_of_sieve(u32::try_from(sieve).ok()?)),
            (None, None) => None,
        }
    }
}

impl Sieve {
    /// As in Traffic Server, which has fewer than 100.
    pub const MOST_BUCKETS: u8 = 99;

    /// An entry takes 64 bytes, and there are up to three times two to the power of the size: 200
    /// MB.
    pub const MOST_SIZE: u8 = 20;

    /// How many addresses the entry lists of all sieves of a policy may hold together: 800 MB.
    pub const MOST_ENTRIES: u64 = 1 << 22;

    /// The most sieves in a policy.
    pub const MOST: usize = MAX_SIEVES as usize;

    /// Returns the capacity of a list, in addresses; list 0 is the perma-block list.
    #[must_use]
    pub const fn capacity(&self, list: u8) -> u32 {
        if list == 0 {
            return 1 << self.size;
        }
        1 << self.size.saturating_sub(self.buckets.saturating_sub(list))
    }

    /// Returns whether its lists match another sieve's in number, sizes and prefix length, so that addresses
    /// can stay.
    #[must_use]
    pub const fn has_lists_of(&self, other: &Self) -> bool {
        self.buckets == other.buckets
            && self.size == other.size
            && self.ipv6_prefix == other.ipv6_prefix
    }

    /// Returns whether it scores any sources.
    #[must_use]
    pub const fn is_on(&self) -> bool {
        self.size > 0
    }
}

/// The memory that all sieves take together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SieveSizes {
    /// Entries, 64 bytes each.
    pub entries: u32,
    /// Chains, 8 bytes each.
    pub heads: u32,
    /// Shards, 64 bytes each.
    pub shards: u32,
}

impl SieveSizes {
    /// Returns the memory that these sieves need. Sieves that are off need none.
    #[must_use]
    pub fn of(sieves: &[CompiledSieve]) -> Self {
        let mut sizes = Self::default();
        for CompiledSieve {
            geometry, region, ..
        } in sieves.iter().filter(|sieve| sieve.geometry.list_count > 0)
        {
            let shards = geometry.shards();
            let end = |first: u32, each: u32| first.saturating_add(shards.saturating_mul(each));
            sizes = Self {
                entries: sizes.entries.max(end(region.entries, geometry.entries())),
                heads: sizes.heads.max(end(region.heads, geometry.chains())),
                shards: sizes.shards.max(end(region.shards, 1)),
            };
        }
        sizes
    }
}
