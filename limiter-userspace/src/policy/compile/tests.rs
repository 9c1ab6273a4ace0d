use std::net::IpAddr;

use ipnet::IpNet;
use limiter_common::{
    limit::{BUILT_IN, LimitId},
    policy::{classify, parameters},
};
use proptest::prelude::*;

use super::*;
use crate::policy::{Override, OverrideId};

fn rate(burst: u64) -> Rate {
    Rate {
        burst,
        count: 1,
        period_ns: 1_000_000_000,
    }
}

/// One limit a list of prefixes; the default's burst is 1, the overrides' their number.
fn policy(limits: &[Vec<IpNet>]) -> Policy {
    let mut burst = 1;
    let limits = (1..).zip(limits).map(|(id, prefixes)| Limit {
        name: format!("Limit{id}"),
        id: LimitId(id),
        overrides: prefixes
            .iter()
            .map(|prefix| {
                burst += 1;
                Override {
                    id: OverrideId::Prefix(*prefix),
                    rate: rate(burst),
                    comment: None,
                }
            })
            .collect(),
        ..Limit::of_built_in(&BUILT_IN[0], Some(rate(1)))
    });
    Policy::from(limits.collect::<Vec<_>>())
}

fn compiled_burst(tables: &CompiledPolicy, source: IpAddr, slot: u32) -> u64 {
    let class = classify(tables, source.into());
    let limit = tables.limit(slot).unwrap();
    parameters(tables, limit, &class, slot).unwrap().burst
}

/// The longest prefix, by asking each.
fn naive_burst(policy: &Policy, source: IpAddr, slot: usize) -> u64 {
    let limit = &policy.limits[slot];
    policy
        .override_of(limit, source)
        .map_or(1, |other| other.rate.burst)
}

/// Prefixes crowded into few addresses, so that they nest, touch and repeat.
fn prefix() -> impl Strategy<Value = IpNet> {
    let v4 = (0u32..64, 0u8..=32).prop_map(|(bits, length)| {
        let shift = if bits % 2 == 0 { 0 } else { 26 };
        IpNet::new(IpAddr::V4((bits << shift).into()), length)
            .unwrap()
            .trunc()
    });
    let v6 = (0u128..64, 0u8..=128).prop_map(|(bits, length)| {
        let shift = [0, 61, 64, 122][(bits % 4) as usize];
        IpNet::new(IpAddr::V6((bits << shift).into()), length)
            .unwrap()
            .trunc()
    });
    prop_oneof![v4, v6]
}

proptest! {
    #[test]
    fn the_longest_prefix_wins(
        limits in prop::collection::vec(prop::collection::hash_set(prefix(), 0..24), 1..4),
        probes in prop::collection::vec(prefix(), 1..32),
    ) {
        let limits: Vec<Vec<IpNet>> =
            limits.into_iter().map(|set| set.into_iter().collect()).collect();
        let policy = policy(&limits);
        let tables = CompiledPolicy::new(&policy).unwrap();
        let edges = limits.iter().flatten().chain(&probes)
            .flat_map(|prefix| [prefix.network(), prefix.broadcast()]);
        for source in edges {
            for slot in 0..limits.len() {
                prop_assert_eq!(
                    compiled_burst(&tables, source, u32::try_from(slot).unwrap()),
                    naive_burst(&policy, source, slot),
                    "{} in slot {}", source, slot
                );
            }
        }
    }
}

#[test]
fn equal_overrides_share_a_class() {
    let mut policy = policy(&[vec![
        "10.0.0.1/32".parse().unwrap(),
        "10.0.0.9/32".parse().unwrap(),
    ]]);
    for other in &mut policy.limits[0].overrides {
        other.rate = rate(7);
    }
    let tables = CompiledPolicy::new(&policy).unwrap();
    // Two of them are those of addresses without an override.
    assert_eq!(tables.classes.len(), 3);
    assert_eq!(tables.overrides.len(), 1);
    assert_eq!(tables.ranges.len(), 5);
    let [sources_v4, others @ ..] = tables.shape.starts;
    assert_eq!(sources_v4, Slot::ranges(0, 5));
    assert!(others.iter().all(Slot::is_unused));
}
