//! The sieves, their regions of memory, and their uses.

use limiter_common::sieve::{
    Geometry, Region, Sieve, SieveUse, pressure_of_limit, pressure_of_sieve,
};

use super::bounds::index;
use crate::policy::{self, Policy, SieveSizes};

/// Compiles a policy's sieves, in the policy's order, and their uses. A disabled sieve takes no memory and
/// has no uses. `cpus` is the number of CPUs that may use them at once.
pub(super) fn compile(policy: &Policy, cpus: u32) -> (Vec<Sieve>, Vec<SieveUse>) {
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
        sieves.push(entry(sieve, region, cpus));
    }
    (sieves, uses(policy))
}

fn entry(sieve: &policy::Sieve, region: Region, cpus: u32) -> Sieve {
    let leading = |bits: u8| {
        u64::MAX
            .checked_shl(64 - u32::from(bits.min(64)))
            .unwrap_or(0)
    };
    let geometry = if sieve.is_on() {
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
    // The datapath scores a packet once per sieve: keep a sieve's uses together.
    uses.sort_by_key(|used| used.sieve);
    uses
}

#[cfg(test)]
mod tests {
    use limiter_common::limit::{BUILT_IN, LimitId};

    use super::*;
    use crate::policy::{Limit, Percentage, PermaBlock, PressureOf};

    const CPUS: u32 = 4;

    fn sieve(name: &str, buckets: u8, size: u8) -> policy::Sieve {
        policy::Sieve {
            name: name.to_owned(),
            buckets,
            size,
            percentage: Percentage::default(),
            max_age_ns: 5,
            perma_block: PermaBlock {
                limit: 6,
                threshold: 1,
                max_age_ns: 7,
            },
            ipv6_prefix: 56,
            pressure: Some(PressureOf::PacketsPerSecond(1)),
        }
    }

    #[test]
    fn regions_stand_behind_each_other() {
        let sieves = [
            sieve("small", 1, 2),
            sieve("off", 1, 0),
            sieve("large", 10, 15),
        ];
        let (compiled, _) = compile(
            &Policy {
                sieves: sieves.into(),
                ..Policy::from(Vec::new())
            },
            CPUS,
        );
        let [small, off, large] = &compiled[..] else {
            panic!("{compiled:?}");
        };
        assert_eq!(small.region, Region::default());
        assert_eq!(off.geometry, Geometry::OFF);
        let behind = SieveSizes::of(&[*small]);
        assert_eq!(behind, SieveSizes::of(&[*small, *off]));
        // Lists of 4 and 4 and three list heads; one shard on any machine.
        assert_eq!((behind.entries, behind.shards), (4 + 4 + 3, 1));
        let region = (
            large.region.entries,
            large.region.heads,
            large.region.shards,
        );
        assert_eq!(region, (behind.entries, behind.heads, behind.shards));
        let all = SieveSizes::of(&compiled);
        let shards = large.geometry.shards();
        assert_eq!(all.shards, 1 + shards);
        assert_eq!(all.entries, 11 + shards * large.geometry.entries());
    }

    #[test]
    fn a_sieve_is_as_it_is_configured() {
        let compiled = entry(&sieve("main", 3, 5), Region::default(), CPUS);
        assert_eq!((compiled.max_age_ns, compiled.perma_max_age_ns), (5, 7));
        assert_eq!((compiled.perma_limit, compiled.perma_threshold), (6, 1));
        for (ipv6_prefix, high, low) in [
            (1, 1 << 63, 0),
            (56, !0xff, 0),
            (64, u64::MAX, 0),
            (65, u64::MAX, 1 << 63),
            (128, u64::MAX, u64::MAX),
        ] {
            let sieve = policy::Sieve {
                ipv6_prefix,
                ..sieve("main", 3, 5)
            };
            let compiled = entry(&sieve, Region::default(), CPUS);
            assert_eq!(
                (compiled.ipv6_mask_high, compiled.ipv6_mask_low),
                (high, low),
                "/{ipv6_prefix}"
            );
        }
    }

    #[test]
    fn uses_of_one_sieve_stand_together() {
        let limit = |id, ip_rep: &str| Limit {
            id: LimitId(id),
            name: format!("Limit{id}"),
            ip_rep: (!ip_rep.is_empty()).then(|| ip_rep.to_owned()),
            ..Limit::of_built_in(&BUILT_IN[0], None)
        };
        let limits = vec![
            limit(20, "b"),
            limit(21, "a"),
            limit(22, ""),
            limit(23, "b"),
        ];
        let sieves = ["a", "b", "everywhere"].map(|name| sieve(name, 3, 5));
        let (_, uses) = compile(
            &Policy {
                sieves: sieves.into(),
                ..Policy::from(limits)
            },
            CPUS,
        );
        let uses: Vec<_> = uses
            .iter()
            .map(|used| (used.limit, used.sieve, used.pressure))
            .collect();
        assert_eq!(uses, [(2, 0, 21), (1, 1, 20), (8, 1, 23), (0, 2, 256 + 2)]);
    }
}
