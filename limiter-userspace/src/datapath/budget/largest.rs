//! The policy that asks most of the verifier.

use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use limiter_common::limit::{BUILT_IN, IdFormat, LimitId, MAX_LIMITS};

use crate::policy::{Fragments, Limit, Match, Mode, Override, OverrideId, Policy, Rate, TcpFlags};

/// Ids of each family that each limit overrides. With `MAX_LIMITS` limits they make some eight
/// thousand ranges of addresses in each family: what the verifier repeats for each of them
/// comes to more than its million.
const OVERRIDES: u32 = 64;

/// As many limits as there may be, of every kind, half of them observing, each with all that a
/// limit can match on, with a default, and with overrides in both families, each for ids of its
/// own.
#[must_use]
pub fn largest_policy() -> Policy {
    let kinds = BUILT_IN.iter().cycle();
    let limits = (0..MAX_LIMITS).zip(1..).zip(kinds);
    Policy {
        limits: limits
            .map(|((slot, id), kind)| Limit {
                name: format!("Limit{id}"),
                id: LimitId(id),
                mode: if slot % 2 == 0 {
                    Mode::Enforce
                } else {
                    Mode::Observe
                },
                id_format: if slot == 0 {
                    IdFormat::Total
                } else {
                    kind.id_format
                },
                matching: matching(slot),
                overrides: overrides(slot),
                ..Limit::of_built_in(kind, Some(RATE))
            })
            .collect(),
        subscribers: [(1, vec![v4(0), v6(0)])].into(),
        ..Policy::from(Vec::new())
    }
}

fn matching(slot: u32) -> Match {
    let port = 1 + (slot % 1_000) as u16;
    Match {
        protocols: vec![6, 17],
        source_ports: vec![port..=port],
        destination_ports: vec![port..=port],
        tcp_flags: Some(TcpFlags { set: 2, clear: 16 }),
        destinations: vec![v4(slot), v6(slot)],
        fragments: Fragments::Ignore,
    }
}

/// Not a whole number of nanoseconds a token, so counted in ticks.
const RATE: Rate = Rate {
    burst: 10_000,
    count: 7_777,
    period_ns: 1_000_000_000,
};

/// Every second /24 and /48 from those of the slot on, so that no two touch.
fn overrides(slot: u32) -> Vec<Override> {
    (slot * OVERRIDES..(slot + 1) * OVERRIDES)
        .flat_map(|number| [v4(number), v6(number)])
        .map(|id| Override {
            id: OverrideId::Prefix(id),
            rate: RATE,
            comment: None,
        })
        .collect()
}

fn v4(number: u32) -> IpNet {
    Ipv4Net::new_assert((number << 9).into(), 24).into()
}

fn v6(number: u32) -> IpNet {
    Ipv6Net::new_assert((u128::from(number) << 81).into(), 48).into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::CompiledPolicy;

    #[test]
    fn fills_the_tables() {
        let tables = CompiledPolicy::new(&largest_policy()).unwrap();
        assert_eq!(tables.limits.len(), MAX_LIMITS as usize);
        let starts = tables.shape.starts;
        assert!(
            starts
                .iter()
                .all(|start| start.as_node().is_some() && !start.is_unused())
        );
        // Each limit's own in each family, the subscriber's, and those of all other addresses.
        assert_eq!(tables.classes.len(), 2 * (MAX_LIMITS as usize + 2));
    }
}
