//! Automatic rates: the daemon adjusts them between a floor and a ceiling.

use std::ops::RangeInclusive;

use limiter_common::strategy::gcra::{CurrentRate, Gcra};

use super::{Limit, Rate};

const SECOND_NS: u64 = 1_000_000_000;

/// A bucket holds the tokens of a second divided by this.
const BURST_PART: u64 = 10;

/// The valid automatic rates, in tokens a second. At the lowest, the bucket holds ten tokens, and the
/// emission interval still fits the word that packets read it from. At the highest, an emission interval in
/// whole nanoseconds is within a hundredth of the rate's.
pub const AUTOMATIC_RATES: RangeInclusive<u64> = 100..=10_000_000;

const _: () = assert!(interval_of(*AUTOMATIC_RATES.start()) <= CurrentRate::LONGEST_INTERVAL);

/// Returns the emission interval in nanoseconds for a rate in tokens a second: rounded up, so that buckets
/// never exceed the rate. The rate must not be 0.
#[must_use]
pub const fn interval_of(rate: u64) -> u64 {
    SECOND_NS.div_ceil(rate)
}

/// Returns the rate, in whole tokens a second, for an emission interval in nanoseconds.
#[must_use]
pub const fn rate_of(interval_ns: u64) -> u64 {
    match SECOND_NS.checked_div(interval_ns) {
        Some(rate) => rate,
        None => 0,
    }
}

/// Returns the terms of an automatic rate at its floor, in tokens a second.
#[must_use]
pub const fn at_floor(floor: u64) -> Rate {
    Rate {
        burst: floor / BURST_PART,
        count: floor,
        period_ns: SECOND_NS,
    }
}

/// Returns the terms in force of an automatic rate, from the parameters of its bucket.
#[must_use]
pub const fn in_force(gcra: &Gcra) -> Rate {
    Rate {
        burst: gcra.burst,
        count: rate_of(gcra.emission_interval),
        period_ns: SECOND_NS,
    }
}

/// Formats an automatic rate as in a configuration file, from its terms at the floor and its ceiling.
#[must_use]
pub fn shown(floor: &Rate, ceiling: u64) -> String {
    format!(
        "{{count: auto, floor: {}, ceiling: {ceiling}}}",
        floor.count
    )
}

impl Limit {
    /// Returns the floor and the ceiling of an automatic rate, in tokens a second; `None`: the rate is fixed.
    #[must_use]
    pub fn automatic(&self) -> Option<(u64, u64)> {
        Some((self.default?.count, self.ceiling?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rate_has_an_interval_that_never_exceeds_it() {
        for rate in [
            100, 101, 3_000, 999_999, 1_000_000, 7_654_321, 9_999_999, 10_000_000,
        ] {
            let found = rate_of(interval_of(rate));
            let least = rate - rate.div_ceil(100);
            assert!((least..=rate).contains(&found), "{found} of {rate}");
        }
        assert_eq!(interval_of(100), 10_000_000);
        assert_eq!(rate_of(0), 0);
    }

    #[test]
    fn shown_as_configured() {
        assert_eq!(
            at_floor(5_000).to_string(),
            "{burst: 500, count: 5000, period: 1s}"
        );
        assert_eq!(
            shown(&at_floor(5_000), 1_000_000),
            "{count: auto, floor: 5000, ceiling: 1000000}"
        );
    }
}
