//! The policy that costs the verifier most.

use std::path::PathBuf;

use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use limiter_common::{
    answer::Answer,
    connection::MOST_LIMITS,
    limit::{
        ANSWER_LIMITS, BUILT_IN, COOKIE_LIMITS, Cost, IdFormat, LimitId, MAX_HANDSHAKE_LIMITS,
        MAX_LIMITS, NameKind,
    },
    packet::TcpState,
    sieve::MAX_SIEVES,
    standing::Standing,
    strategy::{Strategy, moving_window},
};
use limiter_policy::policy::{
    Deny, DnsCookies, DnsMatch, DnsName, Fragments, IcmpTypes, Limit, Match, Mode, OverriddenName,
    Override, OverrideId, Percentage, PermaBlock, Policy, PressureOf, Queue, Rate, Reserve,
    ReserveSize, Sieve, TcpFlags, UntilKnown,
};

/// How many ids of each family each limit overrides. With `MAX_LIMITS` limits they make about eight thousand ranges in
/// each family: work repeated for each range would exceed the verifier's million.
const OVERRIDES: u32 = 64;

/// Returns a policy with as many limits as possible, of every kind, half of them observing. Each but one has everything
/// that a limit can match on, a default, overrides for its own ids in both families, and a reserve if its strategy can
/// have one. The first limit has an automatic rate; a fleet shares all others that it can. They take `strategies` in
/// turn, each in both modes.
#[must_use]
pub fn largest_policy(strategies: &[Strategy]) -> Policy {
    let kinds = BUILT_IN.iter().cycle();
    let strategies = strategies.iter().flat_map(|strategy| [*strategy; 2]);
    let limits = (0..MAX_LIMITS).zip(1..).zip(kinds).zip(strategies.cycle());
    Policy {
        limits: limits
            .map(|(((limit_index, id), kind), strategy)| {
                (limit_index, id, kind, possible(strategy, kind.cost))
            })
            .map(|(limit_index, id, kind, strategy)| Limit {
                name: format!("Limit{id}"),
                id: LimitId(id),
                mode: if limit_index % 2 == 0 {
                    Mode::Enforce
                } else {
                    Mode::Observe
                },
                id_format: match limit_index {
                    0 => IdFormat::Total,
                    1 => IdFormat::Zone,
                    2 => IdFormat::Question,
                    3 => IdFormat::Domain,
                    4 => IdFormat::ServerName,
                    _ => kind.id_format,
                },
                per_name: (limit_index == 5).then_some(NameKind::Domain),
                matching: matching(limit_index),
                ceiling: (limit_index == 0).then_some(CEILING),
                fleet_nodes: is_shared(limit_index, strategy).then_some(NODES),
                overrides: overrides(limit_index, rate(strategy))
                    .chain(override_by_name(limit_index, rate(strategy)))
                    .collect(),
                ip_rep: Some(sieve(0).name),
                reserve: strategy.why_no_reserve().is_none().then_some(RESERVE),
                strategy,
                // Without a default, the stage of names skips this limit if it has no override for the name.
                ..Limit::of_built_in(kind, (limit_index != 2).then(|| rate(strategy)))
            })
            .collect(),
        subscribers: [(1, vec![v4(0), v6(0)])].into(),
        sieves: (0..MAX_SIEVES).map(sieve).collect(),
        zones: (0..MAX_LIMITS).map(zone).collect(),
        server_names: (0..MAX_LIMITS).map(zone).collect(),
        until_known: UntilKnown::Hold,
        ..Policy::from(Vec::new())
    }
}

/// Returns the policy with fewer limits, as many as there may be beside answers' limits. They answer, by standing, and
/// DNS cookies are on. The last limits count connections, as many as may be, with one shared count and a queue; the
/// ones before them count handshakes, and one counts new names.
#[must_use]
pub fn answering(mut policy: Policy) -> Policy {
    policy
        .limits
        .truncate(MAX_LIMITS as usize - ANSWER_LIMITS.len() - COOKIE_LIMITS.len());
    for limit in &mut policy.limits {
        limit.deny = Some(Deny {
            familiar: Some(Answer::Drop),
            fresh: Some(Answer::Reset),
            retried: Some(Answer::Truncate),
            unknown: Some(Answer::SynCookie),
            slip: 2,
            ..Deny::everybody(Answer::Prohibited)
        });
    }
    for limit in policy.limits.iter_mut().rev().take(MOST_LIMITS) {
        let rate = Rate::of_connections(50);
        limit.cost = Cost::Connections;
        limit.strategy = Strategy::Gcra;
        limit.reserve = Some(RESERVE);
        limit.default = Some(rate);
        limit.group = Some("front".to_owned());
        limit.queue = Some(Queue {
            size: 1000,
            max_age_ns: 30_000_000_000,
        });
        for other in &mut limit.overrides {
            other.rate = rate;
        }
    }
    let others = policy.limits.iter_mut().rev().skip(MOST_LIMITS);
    for limit in others.take(MAX_HANDSHAKE_LIMITS) {
        limit.cost = Cost::Handshakes;
        limit.strategy = Strategy::Gcra;
    }
    // The first limit has an automatic rate.
    if let Some(limit) = policy.limits.get_mut(1) {
        limit.cost = Cost::NewNames;
    }
    policy.dns_cookies = Some(DnsCookies {
        secret_file: PathBuf::new(),
        port: DnsCookies::DEFAULT_PORT,
    });
    policy
}

/// Returns the strategy, or another one for a cost that it cannot count.
fn possible(strategy: Strategy, cost: Cost) -> Strategy {
    if cost == Cost::Bytes && strategy.why_no_bytes().is_some() {
        Strategy::SlidingWindowCounter
    } else {
        strategy
    }
}

/// Returns whether a fleet shares the limit with this index.
fn is_shared(limit_index: u32, strategy: Strategy) -> bool {
    limit_index != 0 && limit_index.is_multiple_of(2) && strategy == Strategy::Gcra
}

/// Returns a sieve. All limits use the first sieve, the whole interface uses the others.
fn sieve(number: u32) -> Sieve {
    Sieve {
        name: format!("sieve{number}"),
        buckets: 2,
        size: 5,
        percentage: Percentage::default(),
        max_age_ns: 1_000_000_000,
        perma_block: PermaBlock {
            limit: 1,
            threshold: 1,
            max_age_ns: 1_000_000_000,
        },
        ipv6_prefix: 64,
        pressure: Some(PressureOf::PacketsPerSecond(1)),
    }
}

/// Returns a zone. Each has another number of labels.
fn zone(number: u32) -> DnsName {
    let labels = vec!["z"; number as usize % 63 + 1].join(".");
    labels.parse().unwrap_or_default()
}

fn matching(limit_index: u32) -> Match {
    let port = 1 + (limit_index % 1_000) as u16;
    Match {
        protocols: vec![6, 17],
        source_ports: vec![port..=port],
        destination_ports: vec![port..=port],
        tcp_flags: Some(TcpFlags { set: 2, clear: 16 }),
        icmp_types: IcmpTypes {
            icmp: vec![8],
            icmpv6: vec![128],
        },
        destinations: vec![v4(limit_index), v6(limit_index)],
        fragments: Fragments::Ignore,
        standing: Standing::ALL[limit_index as usize % Standing::COUNT..].to_vec(),
        tcp_states: TcpState::NAMED[limit_index as usize % TcpState::NAMED.len()..].to_vec(),
        dns: DnsMatch {
            names: vec![zone(limit_index).pattern_below()],
            types: vec![port],
            opcodes: vec![0],
            recursion_desired: Some(true),
            edns: Some(false),
        },
        server_names: vec![zone(limit_index).pattern_below()],
        otherwise: limit_index % 8 == 7,
    }
}

/// Tokens of [`RATE`].
const RESERVE: Reserve = Reserve {
    familiar: ReserveSize::Tokens(1_000),
    fresh: ReserveSize::Tokens(2_000),
    retried: ReserveSize::Tokens(3_000),
    unknown: ReserveSize::Tokens(5_000),
};

/// The number of nodes in a fleet.
const NODES: u32 = 3;

/// In tokens per second.
const CEILING: u64 = 1_000_000;

/// The interval per token is no whole number of nanoseconds, so it is counted in ticks.
const RATE: Rate = Rate {
    burst: 10_000,
    count: 7_777,
    period_ns: 1_000_000_000,
};

/// The largest count of a moving window; the other windows allow it, too.
const RATE_OF_WINDOWS: Rate = Rate {
    burst: moving_window::STAMPS,
    count: moving_window::STAMPS,
    period_ns: 1_000_000_000,
};

const fn rate(strategy: Strategy) -> Rate {
    if strategy.has_burst() {
        RATE
    } else {
        RATE_OF_WINDOWS
    }
}

/// Returns an override by name of each limit that counts by name.
fn override_by_name(limit_index: u32, rate: Rate) -> Option<Override> {
    let name = OverriddenName {
        // The zone is also a registered domain.
        name: zone(1),
        question: (limit_index == 2).then_some((1, 1)),
    };
    let id = match limit_index {
        1..=4 => OverrideId::Name(name),
        5 => OverrideId::PrefixAndName(v6(limit_index), name),
        _ => return None,
    };
    Some(Override {
        id,
        rate,
        comment: None,
    })
}

/// Returns overrides of every second /24 and /48 from the index on, so that no two are adjacent.
fn overrides(limit_index: u32, rate: Rate) -> impl Iterator<Item = Override> {
    (limit_index * OVERRIDES..(limit_index + 1) * OVERRIDES)
        .flat_map(|number| [v4(number), v6(number)])
        .map(move |id| Override {
            id: OverrideId::Prefix(id),
            rate,
            comment: None,
        })
}

fn v4(number: u32) -> IpNet {
    Ipv4Net::new_assert((number << 9).into(), 24).into()
}

fn v6(number: u32) -> IpNet {
    Ipv6Net::new_assert((u128::from(number) << 81).into(), 48).into()
}

#[cfg(test)]
mod tests {
    use limiter_policy::policy::CompiledPolicy;

    use super::*;

    #[test]
    fn fills_the_tables() {
        for strategies in [&[Strategy::Gcra][..], &Strategy::ALL] {
            let policy = largest_policy(strategies);
            for strategy in strategies {
                for mode in [Mode::Enforce, Mode::Observe] {
                    let mut limits = policy.limits.iter();
                    let is_there = limits.any(|one| (one.strategy, one.mode) == (*strategy, mode));
                    assert!(is_there, "{strategy:?} {mode:?}");
                }
            }
            let tables = CompiledPolicy::new(&policy, 1).unwrap();
            assert_eq!(tables.limits.len(), MAX_LIMITS as usize);
            let starts = tables.features.starts;
            assert!(
                starts
                    .iter()
                    .all(|start| start.as_node().is_some() && !start.is_unused())
            );
            // Each limit's own parameters in each family, the subscriber's, and the ones for all other addresses.
            assert_eq!(
                tables.sieve_uses.len(),
                (MAX_LIMITS + MAX_SIEVES - 1) as usize
            );
            // And by name: the overridden zone, its question and names in other zones of the domain, with and without
            // the source; and the server name.
            let by_name = 3 * 2 + 1;
            assert_eq!(
                tables.classes.len(),
                2 * (MAX_LIMITS as usize + 2) + by_name
            );
        }
    }
}
