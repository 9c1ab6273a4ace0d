//! Shared limits (`scope: fleet`): each node has a part of the burst and of the rate.

use limiter_common::{
    address::Family,
    limit::{Cost, NameKind},
    strategy::gcra::Parts,
};
use limiter_fleet::{Share, lease::minimum_share};

use super::{Limit, Policy, Rate};

/// The length of the longest frame of most networks, in bytes.
pub const LONGEST_FRAME: u64 = 1_514;

/// Returns a share in the kernel's representation, rounded down; `None`: it rounds to nothing.
#[must_use]
pub fn parts(share: Share) -> Option<Parts> {
    Parts::of_ratio(share.in_billionths(), Share::WHOLE.in_billionths())
}

/// Returns the minimum share of each node in a fleet of this size.
#[must_use]
pub fn minimum_share_of(nodes: u32) -> Parts {
    parts(minimum_share(nodes)).unwrap_or(Parts::LEAST)
}

/// Returns the smallest burst that this many nodes can share: the minimum share of it holds a token, or of
/// bytes a frame.
#[must_use]
pub fn least_burst(cost: Cost, nodes: u32) -> u64 {
    let packet = match cost {
        Cost::Bytes => LONGEST_FRAME,
        _ => 1,
    };
    minimum_share_of(nodes).cost(packet)
}

impl Limit {
    /// Returns this node's minimum share; `None`: the limit is not shared.
    #[must_use]
    pub fn minimum_share(&self) -> Option<Parts> {
        self.fleet_nodes.map(minimum_share_of)
    }

    /// Returns the smallest burst that holds so many tokens; of a shared limit's, the minimum share holds them.
    #[must_use]
    pub fn least_burst(&self, tokens: u64) -> u64 {
        self.minimum_share()
            .map_or(tokens, |minimum_share| minimum_share.cost(tokens))
    }

    /// Returns whether another limit has the same budgets: the same keys, shared among as many nodes. A share is a part
    /// of any rate.
    #[must_use]
    pub fn has_budget_of(&self, other: &Self) -> bool {
        let terms = |limit: &Self| {
            let lengths = [Family::V4, Family::V6].map(|family| limit.prefix_length(family));
            let keys = (limit.id_format, limit.per_name, limit.cost, lengths);
            (keys, limit.fleet_nodes)
        };
        terms(self) == terms(other)
    }
}

impl Limit {
    /// Returns whether it is shared and its keys are names, which buckets know by keyed hashes: all nodes
    /// must then hash with the same secret.
    #[must_use]
    pub fn needs_names_alike(&self) -> bool {
        self.fleet_nodes.is_some()
            && matches!(
                self.name_kind(),
                Some(NameKind::Domain | NameKind::Question)
            )
    }
}

impl Policy {
    /// Returns whether any of its limits [does](Limit::needs_names_alike).
    #[must_use]
    pub fn needs_names_alike(&self) -> bool {
        self.limits.iter().any(Limit::needs_names_alike)
    }
}

impl Rate {
    /// Returns the whole tokens that come back in a second.
    #[must_use]
    pub fn a_second(self) -> u64 {
        let tokens = u128::from(self.count) * 1_000_000_000 / u128::from(self.period_ns.max(1));
        u64::try_from(tokens).unwrap_or(u64::MAX)
    }

    /// Returns the terms of a share of this budget, rounded down.
    #[must_use]
    pub const fn of_share(self, parts: Parts) -> Self {
        let (count, period_ns) = match parts.of(self.count) {
            0 => (1, parts.cost(self.period_ns.div_ceil(self.count))),
            count => (count, self.period_ns),
        };
        Self {
            burst: parts.of(self.burst),
            count,
            period_ns,
        }
    }
}

#[cfg(test)]
mod tests {
    use limiter_common::strategy::gcra::Gcra;

    use super::*;

    #[test]
    fn a_minimum_share_of_the_least_burst_holds_a_packet() {
        assert_eq!(least_burst(Cost::Packets, 2), 40);
        assert_eq!(least_burst(Cost::NewConnections, 3), 61);
        assert_eq!(least_burst(Cost::Bytes, 10), 302_800);
        assert_eq!(least_burst(Cost::Packets, 10_000), 200_000);
        for (cost, packet) in [(Cost::Packets, 1), (Cost::Bytes, LONGEST_FRAME)] {
            for nodes in [1, 2, 3, 7, 8, 100, 10_000] {
                let least = least_burst(cost, nodes);
                let holds = |burst| {
                    let gcra = Gcra::new(burst, 1_000, 1_000_000_000).unwrap();
                    gcra.level_of_share(0, None, minimum_share_of(nodes))
                        .remaining
                        >= packet
                };
                assert!(holds(least) && !holds(least - 1), "{nodes} nodes, {least}");
            }
        }
    }

    #[test]
    fn parts_of_nodes_add_up_to_no_more_than_the_whole() {
        for among in [1_u32, 2, 3, 7, 1_000] {
            let each = parts(Share::WHOLE.divided(among.into())).unwrap();
            assert!(each.number() * among <= Parts::WHOLE.number());
        }
        assert_eq!(parts(Share::WHOLE), Some(Parts::WHOLE));
        assert_eq!(parts(Share::NONE), None);
        let half = parts(Share::billionths(500_000_000)).unwrap();
        let whole = Rate {
            burst: 41,
            count: 7,
            period_ns: 1,
        };
        assert_eq!(
            whole.of_share(half).to_string(),
            "{burst: 20, count: 3, period: 1ns}"
        );
        let slow = Rate { count: 1, ..whole };
        assert_eq!(
            slow.of_share(half).to_string(),
            "{burst: 20, count: 1, period: 2ns}"
        );
    }
}
