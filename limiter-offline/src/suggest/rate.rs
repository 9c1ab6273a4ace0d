//! Finds the rate and the burst by which a limit passes a fraction of the observed packets.

use limiter_common::{
    limit::Cost,
    strategy::gcra::{Gcra, MAX_TOKENS_PER_NS},
};
use serde::Serialize;

use super::{drops::Drops, keys::Keys, peaks::busy, record::Entry};

const SECOND_NS: u64 = 1_000_000_000;

/// Rates are searched in tokens per ten seconds. This is also the longest time that a burst covers.
pub(super) const WINDOW_NS: i64 = 10_000_000_000;
const WINDOW_SECONDS: u64 = 10;

/// From this many tokens in ten seconds on, a rate is given per second.
const PER_SECOND_FROM: u64 = 100;

/// A limit's burst and rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Terms {
    /// Tokens of a full bucket.
    pub burst: u64,
    /// Tokens that a bucket gains in a period.
    pub count: u64,
    /// The period in nanoseconds.
    pub period_ns: u64,
}

impl Terms {
    /// Makes a rate from tokens per ten seconds.
    const fn new(burst: u64, in_ten_seconds: u64) -> Self {
        if in_ten_seconds < PER_SECOND_FROM {
            Self {
                burst,
                count: in_ten_seconds,
                period_ns: WINDOW_SECONDS * SECOND_NS,
            }
        } else {
            Self {
                burst,
                count: round_up(in_ten_seconds.div_ceil(WINDOW_SECONDS)),
                period_ns: SECOND_NS,
            }
        }
    }

    pub(super) const fn gcra(self) -> Option<Gcra> {
        Gcra::new(self.burst, self.count, self.period_ns)
    }
}

/// The needed burst and rate, without head room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Need {
    burst: u64,
    in_ten_seconds: u64,
    /// The least allowed burst.
    least_burst: u64,
}

impl Need {
    /// Returns the terms, scaled by `headroom`.
    pub(super) fn terms(self, headroom: f64) -> Terms {
        let burst = scaled(self.burst, headroom).max(self.least_burst);
        Terms::new(burst, scaled(self.in_ten_seconds, headroom))
    }

    /// Finds the rate and the burst. The rate is the one of a busy ten-second window: windows busier than this
    /// hold at most a fraction `most_dropped` of all tokens. The burst is the lowest one that drops at most
    /// this fraction of the packets. A burst covers ten seconds at most; the rate grows if that is too little.
    /// `None`: no packet is counted, or the need exceeds the most that a limit can count.
    ///
    /// A lower rate with a larger burst could drop as little, but such a rate is hardly above the mean. Its
    /// drops would depend on the mean, and show up too late.
    pub(super) fn of(
        entries: &[&Entry],
        keys: &Keys,
        cost: Cost,
        least_burst: u64,
        most_dropped: f64,
    ) -> Option<Self> {
        let entries = || entries.iter().copied();
        let (busy, highest) = busy(entries(), keys, cost, WINDOW_NS, most_dropped)?;
        let suffices = |burst: u64, in_ten_seconds: u64| {
            let gcra = Gcra::new(
                burst.max(least_burst),
                in_ten_seconds,
                WINDOW_SECONDS * SECOND_NS,
            );
            gcra.is_some_and(|gcra| {
                Drops::of(entries(), keys, cost, &gcra).fraction() <= most_dropped
            })
        };
        // Any span of one window's length touches at most two windows, so twice the busiest drops no packet.
        let enough = position(highest.saturating_mul(2));
        let rate = lowest(position(busy), enough, |at| suffices(value(at), value(at)));
        let in_ten_seconds = value(rate);
        let of_burst = position(least_burst.max(1)).min(rate);
        let burst = lowest(of_burst, rate, |at| suffices(value(at), in_ten_seconds));
        let need = Self {
            burst: value(burst).max(least_burst),
            in_ten_seconds,
            least_burst,
        };
        suffices(need.burst, need.in_ten_seconds).then_some(need)
    }
}

/// Returns the lowest position that suffices, from `low` to `high`. Precondition: `high` suffices.
fn lowest(low: u32, high: u32, suffices: impl Fn(u32) -> bool) -> u32 {
    let (mut low, mut high) = (low, high);
    while low < high {
        let middle = low.midpoint(high);
        if suffices(middle) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    low
}

/// Round numbers have two digits followed by zeros: 1 to 99, then 90 for each power of ten.
const UP_TO_99: u32 = 99;
const OF_A_POWER: u32 = 90;

/// The upper bound of rates: the most that a limit can count in ten seconds.
const HIGHEST: u64 = MAX_TOKENS_PER_NS * WINDOW_SECONDS * SECOND_NS;

/// Returns the round number at a position.
const fn value(position: u32) -> u64 {
    if position < UP_TO_99 {
        return position as u64 + 1;
    }
    let power = 10_u64.pow((position - UP_TO_99) / OF_A_POWER + 1);
    (10 + ((position - UP_TO_99) % OF_A_POWER) as u64) * power
}

/// Returns the position of the lowest round number that is at least `number`, or [`HIGHEST`] if that is lower.
const fn position(number: u64) -> u32 {
    let number = if number < HIGHEST { number } else { HIGHEST };
    let (mut low, mut high) = (0, UP_TO_99 + OF_A_POWER * 12);
    while low < high {
        let middle = u32::midpoint(low, high);
        if value(middle) < number {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    low
}

const fn round_up(number: u64) -> u64 {
    value(position(number))
}

#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "it is rounded to two digits, and saturates"
)]
fn scaled(number: u64, factor: f64) -> u64 {
    round_up((number as f64 * factor).ceil() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn round_numbers() {
        for (number, rounded) in [
            (0, 1),
            (1, 1),
            (99, 99),
            (100, 100),
            (101, 110),
            (990, 990),
            (991, 1000),
            (1_234_567, 1_300_000),
            (u64::MAX, HIGHEST),
        ] {
            assert_eq!(round_up(number), rounded, "{number}");
        }
        for at in 0..position(HIGHEST) {
            assert!(value(at) < value(at + 1));
            assert_eq!(position(value(at)), at);
        }
        assert_eq!(scaled(45, 2.0), 90);
        assert_eq!(scaled(7, 1.5), 11);
    }

    #[test]
    fn slow_rates_are_for_ten_seconds() {
        let slow = Terms::new(5, 99);
        assert_eq!((slow.count, slow.period_ns), (99, 10 * SECOND_NS));
        let fast = Terms::new(5, 1011);
        assert_eq!((fast.count, fast.period_ns), (110, SECOND_NS));
    }
}
