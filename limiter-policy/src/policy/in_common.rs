//! Budgets that a fleet has in common: each node has a part of the burst and of the rate.
//!
//! A part is a rate that moves between a floor and the whole, like an automatic one: as the burst offset
//! stays, the same part of the burst moves with it. See [`CurrentRate`].

use limiter_common::strategy::gcra::CurrentRate;
use limiter_fleet::{Share, floor_among};

use super::{Limit, Rate};

/// The shortest emission interval of a whole budget, in nanoseconds: rounded up to whole ones, it is within
/// a hundredth of the rate's.
const SHORTEST_INTERVAL: u64 = 100;

const SECOND_NS: u64 = 1_000_000_000;

/// A budget that no fleet can have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Indivisible {
    /// It is faster than so many tokens a second.
    TooFast(u64),
    /// It is slower than so many tokens a second.
    TooSlow(u64),
    /// Its burst is smaller than so many tokens, so a floor holds none.
    TooSmall(u64),
}

/// Returns the emission interval of a whole budget, in nanoseconds: rounded up, so that its rate is never
/// exceeded. The count must not be 0.
#[must_use]
pub const fn whole_interval(rate: &Rate) -> u64 {
    rate.period_ns.div_ceil(rate.count)
}

/// Returns the emission interval of a share of a budget with this interval, both in nanoseconds: rounded up,
/// so that the rates of shares that add up to the whole add up to no more than the whole's. The share must
/// not be nothing.
#[must_use]
pub fn interval_of_share(whole: u64, share: Share) -> u64 {
    let product = u128::from(whole) * u128::from(Share::WHOLE.in_billionths());
    let interval = product.div_ceil(u128::from(share.in_billionths().max(1)));
    u64::try_from(interval).unwrap_or(u64::MAX)
}

/// Returns the emission interval of each node's floor, in nanoseconds.
#[must_use]
pub fn interval_of_floor(whole: u64, nodes: u32) -> u64 {
    interval_of_share(whole, floor_among(nodes))
}

/// Checks whether so many nodes can have a budget in common.
///
/// # Errors
///
/// They cannot, and why.
pub fn check(rate: &Rate, nodes: u32) -> Result<(), Indivisible> {
    let whole = whole_interval(rate);
    let floor = floor_among(nodes);
    if u128::from(rate.count) * u128::from(SHORTEST_INTERVAL) > u128::from(rate.period_ns) {
        return Err(Indivisible::TooFast(SECOND_NS / SHORTEST_INTERVAL));
    }
    if interval_of_floor(whole, nodes) > CurrentRate::LONGEST_INTERVAL {
        let longest = floor.of(CurrentRate::LONGEST_INTERVAL).max(1);
        return Err(Indivisible::TooSlow(SECOND_NS.div_ceil(longest)));
    }
    let least = Share::WHOLE
        .in_billionths()
        .div_ceil(floor.in_billionths().max(1));
    if rate.burst < least {
        return Err(Indivisible::TooSmall(least));
    }
    Ok(())
}

impl Limit {
    /// Returns whether the rate in force moves while the policy stays: it is automatic, or a part of what a
    /// fleet has in common.
    #[must_use]
    pub const fn has_moving_rate(&self) -> bool {
        self.ceiling.is_some() || self.fleet_nodes.is_some()
    }

    /// Returns the emission intervals of the whole budget and of a node's floor, in nanoseconds, if a fleet
    /// has the budget in common.
    #[must_use]
    pub fn in_common(&self) -> Option<(u64, u64)> {
        // A count of 0 is no rate, as the compiler says.
        let rate = self.default.filter(|rate| rate.count > 0)?;
        let whole = whole_interval(&rate);
        Some((whole, interval_of_floor(whole, self.fleet_nodes?)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn rate(burst: u64, count: u64) -> Rate {
        Rate {
            burst,
            count,
            period_ns: SECOND_NS,
        }
    }

    #[test]
    fn parts_are_no_faster_than_the_whole() {
        for count in [2_400, 99_991, 1_000_000, 10_000_000] {
            let whole = whole_interval(&rate(1, count));
            for among in [1_u64, 2, 3, 7, 1_000] {
                let each = interval_of_share(whole, Share::WHOLE.divided(among));
                assert!(u128::from(each) >= u128::from(whole) * u128::from(among));
            }
            assert_eq!(interval_of_share(whole, Share::WHOLE), whole);
        }
    }

    #[test]
    fn what_can_be_divided() {
        assert_eq!(check(&rate(40, 2_400), 2), Ok(()));
        assert_eq!(check(&rate(40, 2_000), 2), Err(Indivisible::TooSlow(2_385)));
        assert_eq!(check(&rate(40, 2_385), 2), Ok(()));
        assert_eq!(check(&rate(39, 2_400), 2), Err(Indivisible::TooSmall(40)));
        assert_eq!(
            check(&rate(40, 10_000_001), 2),
            Err(Indivisible::TooFast(10_000_000))
        );
        assert_eq!(check(&rate(200, 12_000), 10), Ok(()));
    }
}
