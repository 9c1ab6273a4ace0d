//! The policy that asks most of the verifier.

use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use limiter_common::limit::{BUILT_IN, LimitId, MAX_LIMITS};

use crate::policy::{Limit, Override, Policy, Rate};

/// Ids of each family that each limit overrides. With `MAX_LIMITS` limits they make some eight
/// thousand ranges of addresses in each family: what the verifier repeats for each of them
/// comes to more than its million.
const OVERRIDES: u32 = 64;

/// As many limits as there may be, of every kind, all with a default and with overrides in
/// both families, each for ids of its own.
#[must_use]
pub fn largest_policy() -> Policy {
    let kinds = BUILT_IN.iter().cycle();
    Policy {
        limits: (0..MAX_LIMITS)
            .zip(1..)
            .zip(kinds)
            .map(|((slot, id), kind)| Limit {
                name: format!("Limit{id}"),
                id: LimitId(id),
                id_format: kind.id_format,
                cost: kind.cost,
                default: Some(RATE),
                overrides: overrides(slot),
            })
            .collect(),
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
            id,
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
        let ranges = (2 * MAX_LIMITS * OVERRIDES) as usize;
        assert_eq!(tables.ranges_v4.len(), ranges);
        assert_eq!(tables.ranges_v6.len(), ranges);
        // Each limit's own, and the one of all other addresses.
        assert_eq!(tables.classes.len(), MAX_LIMITS as usize + 1);
    }
}
