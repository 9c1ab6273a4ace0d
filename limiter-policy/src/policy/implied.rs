//! Rates that another rate of the same limit leaves nothing to do.

use super::{Limit, Policy, configured_name};

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
