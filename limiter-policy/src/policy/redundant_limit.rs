//! Rates that another rate of the same limit makes redundant.

use super::{Limit, Policy, configured_name};

/// A redundant limit: another rate of the same limit denies all its packets, too. (Overrides may differ.)
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RedundantLimit<'p> {
    /// The redundant limit.
    pub limit: &'p Limit,
    /// The limit that already denies them.
    pub by: &'p Limit,
}

impl Policy {
    /// Returns every limit that is redundant beside another rate of the same configured limit.
    pub fn redundant_limits(&self) -> impl Iterator<Item = RedundantLimit<'_>> {
        self.limits.iter().filter_map(|limit| {
            let mut others = self.limits.iter();
            let by = others.find(|by| is_beside(limit, by) && is_implied(limit, by))?;
            Some(RedundantLimit { limit, by })
        })
    }
}

fn is_beside(one: &Limit, other: &Limit) -> bool {
    one.id != other.id && configured_name(&one.name) == configured_name(&other.name)
}

fn is_implied(limit: &Limit, by: &Limit) -> bool {
    let rates = limit.default.zip(by.default);
    rates.is_some_and(|(rate, by)| limit.strategy.admits_all_of(&rate.into(), &by.into()))
}

#[cfg(test)]
mod tests {
    use limiter_common::strategy::Strategy;

    use crate::policy::Rate;

    const fn per_minute(count: u64, minutes: u64) -> Rate {
        Rate {
            burst: count,
            count,
            period_ns: minutes * 60_000_000_000,
        }
    }

    #[test]
    fn what_another_rate_denies_already() {
        use Strategy::{FixedWindow, Gcra, MovingWindow};
        let hourly = |count| per_minute(count, 60);
        for (rate, other, by) in [
            // The same count in a longer time implies it, unless a fixed window ends in between.
            (per_minute(10, 1), hourly(10), &[Gcra, MovingWindow][..]),
            (per_minute(19, 1), hourly(10), &[Gcra, MovingWindow]),
            (per_minute(20, 1), hourly(10), &Strategy::ALL),
            // A longer period's count must reach the sum over the shorter periods.
            (hourly(600), per_minute(10, 1), &[Gcra, MovingWindow]),
            (hourly(599), per_minute(10, 1), &[]),
            (
                hourly(610),
                per_minute(10, 1),
                &[Gcra, FixedWindow, MovingWindow],
            ),
            (hourly(2_400), per_minute(10, 1), &Strategy::ALL),
            // Neither implies the other.
            (per_minute(2, 1), hourly(10), &[]),
            (hourly(10), per_minute(2, 1), &[]),
        ] {
            for strategy in Strategy::ALL {
                assert_eq!(
                    strategy.admits_all_of(&rate.into(), &other.into()),
                    by.contains(&strategy),
                    "{strategy:?}: {rate} beside {other}"
                );
            }
        }
    }
}
