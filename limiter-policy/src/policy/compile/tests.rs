use std::net::{IpAddr, Ipv6Addr};

use ipnet::IpNet;
use limiter_common::{
    address::Address,
    limit::{BUILT_IN, LimitId},
    policy::{classify, parameters_of, search},
};
use proptest::{prelude::*, strategy::Strategy};

use super::*;
use crate::policy::{Limit, List, Match, Override, OverrideId, PortRange, Rate};

mod listed;
mod names;
mod standing;

/// These tests compile no sieves.
const CPUS: u32 = 1;

fn rate(burst: u64) -> Rate {
    Rate {
        burst,
        count: 1,
        period_ns: 1_000_000_000,
    }
}

/// Returns a policy with one limit for each list of prefixes. The default's burst is 1; the
/// overrides' bursts count from 2.
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

fn compiled_burst(tables: &CompiledPolicy, source: IpAddr, limit_index: u32) -> u64 {
    let class = classify(tables, &source.into()).expect("a class");
    parameters_of(tables, class, limit_index)
        .unwrap()
        .gcra
        .burst
}

/// Finds the longest prefix by comparing all.
fn naive_burst(policy: &Policy, source: IpAddr, limit_index: usize) -> u64 {
    let limit = &policy.limits[limit_index];
    policy
        .override_of(limit, source)
        .map_or(1, |other| other.rate.burst)
}

/// Generates prefixes crowded into few addresses, so that they nest, touch and repeat.
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

/// Returns fewer than `most` prefixes, in any order.
fn distinct_prefixes(most: usize) -> impl Strategy<Value = Vec<IpNet>> {
    let prefixes = prop::collection::hash_set(prefix(), 0..most);
    prefixes.prop_map(|prefixes| prefixes.into_iter().collect())
}

proptest! {
    #[test]
    fn the_longest_prefix_wins(
        limits in prop::collection::vec(distinct_prefixes(24), 1..4),
        probes in prop::collection::vec(prefix(), 1..32),
    ) {
        let policy = policy(&limits);
        let tables = CompiledPolicy::new(&policy, CPUS).unwrap();
        let edges = limits.iter().flatten().chain(&probes)
            .flat_map(|prefix| [prefix.network(), prefix.broadcast()]);
        for source in edges {
            for limit_index in 0..limits.len() {
                prop_assert_eq!(
                    compiled_burst(&tables, source, u32::try_from(limit_index).unwrap()),
                    naive_burst(&policy, source, limit_index),
                    "{} for limit {}", source, limit_index
                );
            }
        }
    }
}

/// Returns the limits in the tables for a value.
fn limits_of(tables: &CompiledPolicy, dimension: Dimension, high: u64, low: u64) -> u64 {
    let start = tables.features.start(dimension);
    if start.is_unused() {
        u64::MAX
    } else {
        *tables.mask(search(tables, start, high, low)).unwrap()
    }
}

fn port_range() -> impl Strategy<Value = PortRange> {
    let port = prop_oneof![Just(0), Just(u16::MAX), 0..64u16, any::<u16>()];
    (port.clone(), port).prop_map(|(one, other)| one.min(other)..=one.max(other))
}

fn matching() -> impl Strategy<Value = Match> {
    (
        prop::collection::vec(port_range(), 0..40),
        prop::collection::vec(prefix(), 0..12),
    )
        .prop_map(|(destination_ports, destinations)| Match {
            destination_ports,
            destinations,
            ..Match::default()
        })
}

proptest! {
    #[test]
    fn destinations_and_ports_leave_the_limits_that_match(
        matches in prop::collection::vec(matching(), 1..6),
        addresses in prop::collection::vec(prefix(), 1..32),
        ports in prop::collection::vec(any::<u16>(), 1..32),
    ) {
        let limits = (1..).zip(&matches).map(|(id, matching)| Limit {
            id: LimitId(id),
            matching: matching.clone(),
            ..Limit::of_built_in(&BUILT_IN[0], Some(rate(1)))
        });
        let tables = CompiledPolicy::new(&Policy::from(limits.collect::<Vec<_>>()), CPUS).unwrap();
        let all = u64::MAX >> (64 - matches.len());
        let set = |holds: &dyn Fn(&Match) -> bool| {
            let holding = (0..).zip(&matches).filter(|(_, one)| holds(one));
            holding.fold(0u64, |set, (limit_index, _)| set | 1 << limit_index)
        };

        let destinations = matches.iter().flat_map(|one| &one.destinations);
        for prefix in destinations.chain(&addresses) {
            let dimension = match prefix {
                IpNet::V4(_) => Dimension::DestinationV4,
                IpNet::V6(_) => Dimension::DestinationV6,
            };
            for address in [prefix.network(), prefix.broadcast()] {
                let Address { high, low, .. } = address.into();
                let expected = set(&|one| one.destinations.is_empty()
                    || one.destinations.iter().any(|prefix| prefix.contains(&address)));
                let found = limits_of(&tables, dimension, high, low);
                prop_assert_eq!(found & all, expected, "{}", address);
            }
        }

        let ranges = matches.iter().flat_map(|one| &one.destination_ports);
        let edges = ranges.flat_map(|range| {
            let (first, last) = (*range.start(), *range.end());
            [first.saturating_sub(1), first, last, last.saturating_add(1)]
        });
        for port in edges.chain(ports) {
            let expected = set(&|one| one.destination_ports.is_empty()
                || one.destination_ports.iter().any(|range| range.contains(&port)));
            let found = limits_of(&tables, Dimension::DestinationPort, 0, port.into());
            prop_assert_eq!(found & all, expected, "port {}", port);
        }
    }
}

/// Each prefix has a class of its own; a hundred thousand fit into 64 MiB.
#[test]
fn large_sets_fit_into_memory() {
    const COUNT: u32 = 25_000;
    const MOST: usize = 16 << 20;
    // The factor is odd, so no two are the same.
    let spread = |number: u32| number.wrapping_mul(0x9e37_79b1);
    let v4 = |number| IpNet::new_assert(IpAddr::V4(spread(number).into()), 32);
    let v6 = |outer: u128, shift: u32| {
        move |number| {
            let bits = outer | u128::from(spread(number)) << shift;
            IpNet::new_assert(IpAddr::V6(Ipv6Addr::from_bits(bits)), 128)
        }
    };
    let prefixes = |prefix: &dyn Fn(u32) -> IpNet| (0..COUNT).map(prefix).collect::<Vec<_>>();
    for prefixes in [
        prefixes(&v4),
        prefixes(&v6(0x2 << 124, 92)),
        prefixes(&v6(0x2a1 << 116, 80)),
        prefixes(&v6(0x2001_0db8_0001_0002 << 64, 0)),
    ] {
        let tables = CompiledPolicy::new(&policy(&[prefixes]), CPUS).unwrap();
        assert_eq!(tables.classes.len(), COUNT as usize + 2);
        let bytes = tables.bytes();
        assert!(bytes <= MOST, "{bytes} bytes");
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
    let tables = CompiledPolicy::new(&policy, CPUS).unwrap();
    // Two of them are for addresses without an override.
    assert_eq!(tables.classes.len(), 3);
    // The default's, and one for both overrides.
    assert_eq!(tables.rates.len(), 2);
    let [sources_v4, others @ ..] = tables.features.starts;
    assert_eq!(sources_v4, Child::node(0));
    assert!(others.iter().all(|start| start.is_unused()));
}
