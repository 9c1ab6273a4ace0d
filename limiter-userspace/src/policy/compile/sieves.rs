//! The sieves, where in their memory they are, and who uses them.

use aya::util::nr_cpus;
use limiter_common::sieve::{
    Geometry, Region, Sieve, SieveUse, pressure_of_limit, pressure_of_sieve,
};

use super::index;
use crate::{
    native::SieveSizes,
    policy::{self, Policy},
};

/// The sieves of a policy, by their places in it, and their uses. Those that are off take no
/// memory, and nobody uses them.
pub(super) fn compile(policy: &Policy) -> (Vec<Sieve>, Vec<SieveUse>) {
    let mut sieves = Vec::new();
    for sieve in &policy.sieves {
        let SieveSizes {
            entries,
            heads,
            shards,
        } = SieveSizes::of(&sieves);
        let region = Region {
            entries,
            heads,
            shards,
        };
        sieves.push(entry(sieve, region));
    }
    (sieves, uses(policy))
}

fn entry(sieve: &policy::Sieve, region: Region) -> Sieve {
    let leading = |bits: u8| {
        u64::MAX
            .checked_shl(64 - u32::from(bits.min(64)))
            .unwrap_or(0)
    };
    let geometry = if sieve.is_on() {
        // A kernel that does not tell has one at least.
        let cpus = nr_cpus().map_or(1, index);
        Geometry::new(sieve.buckets.into(), sieve.size.into(), cpus)
    } else {
        Geometry::OFF
    };
    Sieve {
        max_age_ns: sieve.max_age_ns,
        perma_max_age_ns: sieve.perma_block.max_age_ns,
        ipv6_mask_high: leading(sieve.ipv6_prefix),
        ipv6_mask_low: leading(sieve.ipv6_prefix.saturating_sub(64)),
        perma_limit: sieve.perma_block.limit,
        perma_threshold: sieve.perma_block.threshold.into(),
        geometry,
        region,
    }
}

fn uses(policy: &Policy) -> Vec<SieveUse> {
    let mut uses: Vec<_> = policy
        .sieve_uses()
        .into_iter()
        .filter_map(|used| {
            let sieve = used.sieve.map_or(SieveUse::NO_SIEVE, index);
            Some(match used.limit {
                Some(id) => SieveUse {
                    limit: 1 << policy.limits.iter().position(|limit| limit.id == id)?,
                    sieve,
                    pressure: pressure_of_limit(id),
                },
                None => SieveUse {
                    limit: 0,
                    sieve,
                    pressure: pressure_of_sieve(sieve),
                },
            })
        })
        .collect();
    // The datapath scores a packet once in a sieve: its uses stand together.
    uses.sort_by_key(|used| used.sieve);
    uses
}
