//! The memory sizes of sieves.

use limiter_common::sieve::Sieve;
use serde::{Deserialize, Serialize};

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
    pub fn of(sieves: &[Sieve]) -> Self {
        let mut sizes = Self::default();
        for Sieve {
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
