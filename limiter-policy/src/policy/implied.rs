//! Rates that another rate of the same limit leaves nothing to do.

use limiter_common::strategy::Strategy;

use super::{Limit, Policy, Rate, configured_name};

/// A limit that denies nobody by its own rate whom another one of its rates admits. (Overrides may
/// have it otherwise.)
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Implied<'p> {
    /// The limit that does nothing.
    pub limit: &'p Limit,
    /// The one that denies all that it would.
    pub by: &'p Limit,
}

impl Policy {
    /// Every limit that does nothing beside another one of the same name in the configuration.
    pub fn implied(&self) -> impl Iterator<Item = Implied<'_>> {
        self.limits.iter().filter_map(|limit| {
            let mut others = self.limits.iter();
            let by = others.find(|by| is_beside(limit, by) && is_implied(limit, by))?;
            Some(Implied { limit, by })
        })
    }
}

fn is_beside(one: &Limit, other: &Limit) -> bool {
    one.id != other.id && configured_name(&one.name) == configured_name(&other.name)
}

fn is_implied(limit: &Limit, by: &Limit) -> bool {
    let rates = limit.default.zip(by.default);
    rates.is_some_and(|(rate, by)| admits_all_of(limit.strategy, rate, by))
}

/// Whether a rate admits whatever another one of that strategy admits, where both are charged the
/// same packets.
fn admits_all_of(strategy: Strategy, rate: Rate, other: Rate) -> bool {
    let count = u128::from(rate.count);
    let most = u128::from(other.count);
    // How often the other's period begins in so many of this one's.
    let periods = |times: u64| {
        let period_ns = u128::from(rate.period_ns) * u128::from(times);
        period_ns.div_ceil(u128::from(other.period_ns))
    };
    match strategy {
        // It holds no less, and refills no slower.
        Strategy::Gcra => {
            other.burst <= rate.burst
                && most * u128::from(rate.period_ns) <= count * u128::from(other.period_ns)
        }
        // A window may begin in the midst of one of the other's.
        Strategy::FixedWindow => most * (periods(1) + 1) <= count,
        Strategy::MovingWindow => most * periods(1) <= count,
        // It looks back on two periods; and of the other, two counts may fall into one.
        Strategy::SlidingWindowCounter => 2 * most * periods(2) <= count,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn per_minute(count: u64, minutes: u64) -> Rate {
        Rate {
            burst: count,
            count,
            period_ns: minutes * 60_000_000_000,
        }
    }

    #[test]
    fn what_another_rate_denies_already() {
        use Strategy::{FixedWindow, Gcra, MovingWindow, SlidingWindowCounter};
        let hourly = |count| per_minute(count, 60);
        for (rate, other, by) in [
            // As many in a longer time say it all, but where a window may end between them.
            (per_minute(10, 1), hourly(10), &[Gcra, MovingWindow][..]),
            (per_minute(19, 1), hourly(10), &[Gcra, MovingWindow]),
            (per_minute(20, 1), hourly(10), &Strategy::ALL),
            // More than the other's periods add up to.
            (hourly(600), per_minute(10, 1), &[Gcra, MovingWindow]),
            (hourly(599), per_minute(10, 1), &[]),
            (
                hourly(610),
                per_minute(10, 1),
                &[Gcra, FixedWindow, MovingWindow],
            ),
            (hourly(2_400), per_minute(10, 1), &Strategy::ALL),
            // Either may be the one that denies.
            (per_minute(2, 1), hourly(10), &[]),
            (hourly(10), per_minute(2, 1), &[]),
        ] {
            for strategy in [Gcra, FixedWindow, MovingWindow, SlidingWindowCounter] {
                assert_eq!(
                    admits_all_of(strategy, rate, other),
                    by.contains(&strategy),
                    "{strategy:?}: {rate} beside {other}"
                );
            }
        }
    }
}
