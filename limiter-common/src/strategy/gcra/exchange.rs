//! Exchanges a debt for as many tokens in another unit.

use super::MAX_BURST_OFFSET;

/// The number of bits of a fraction of a token.
const FRACTION_BITS: u32 = 31;

/// Converts a debt in ticks, with `from_interval` per token, to ticks with `interval` per token.
/// Returns 0 if one of the intervals is 0, which means no unit.
#[inline(always)]
pub(super) const fn worth(debt: u64, from_interval: u64, interval: u64) -> u64 {
    let (Some(whole), Some(rest), Some(most)) = (
        debt.checked_div(from_interval),
        debt.checked_rem(from_interval),
        MAX_BURST_OFFSET.checked_div(interval),
    ) else {
        return 0;
    };
    if whole > most {
        return MAX_BURST_OFFSET;
    }
    // The sum cannot overflow: both the product and the part are at most 2^62.
    let ticks = whole * interval + part(interval, fraction(rest, from_interval));
    if ticks < MAX_BURST_OFFSET {
        ticks
    } else {
        MAX_BURST_OFFSET
    }
}

/// The given fraction of the emission interval, rounded up. In halves: BPF has no 128-bit product.
#[inline(always)]
const fn part(interval: u64, fraction: u64) -> u64 {
    const LOWER: u64 = (1 << FRACTION_BITS) - 1;
    let high = interval >> FRACTION_BITS;
    let low = interval & LOWER;
    fraction * high + ((fraction * low + LOWER) >> FRACTION_BITS)
}

/// `rest / interval` in units of 2^-[`FRACTION_BITS`], rounded up; the rest must be smaller than
/// the interval, and the interval at most [`MAX_BURST_OFFSET`].
#[inline(always)]
const fn fraction(rest: u64, interval: u64) -> u64 {
    // Long intervals are cut to their upper 32 bits, so that the numerator has room.
    let shift = 32_u32.saturating_sub(interval.leading_zeros());
    let rest = (rest + ((1 << shift) - 1)) >> shift;
    let interval = interval >> shift;
    match ((rest << FRACTION_BITS) + interval.saturating_sub(1)).checked_div(interval) {
        Some(fraction) => fraction,
        None => 0,
    }
}

#[cfg(test)]
mod tests {
    extern crate std;

    use proptest::prelude::*;

    use super::MAX_BURST_OFFSET;
    use crate::{
        limit::Cost,
        strategy::{
            Parameters, Unit,
            gcra::{Gcra, MAX_TOKENS_PER_NS},
        },
    };

    const SECOND: u64 = 1_000_000_000;

    fn unit(count: u64, period_ns: u64) -> Unit {
        Unit::new(
            &Parameters::of_gcra(Gcra::new(1, count, period_ns).unwrap()),
            Cost::Packets,
        )
    }

    /// Any possible rate, from a token in a century to 64 in a nanosecond.
    fn rate() -> impl Strategy<Value = Unit> {
        let period = (0u32..=61).prop_flat_map(|bits| 1u64 << bits..=2 << bits);
        let count = (0u32..40).prop_flat_map(|bits| 1u64 << bits..=2 << bits);
        (count, period).prop_filter_map("a rate", |(count, period)| {
            let fits = count.div_ceil(period) <= MAX_TOKENS_PER_NS;
            let gcra = fits.then(|| Gcra::new(1, count, period)).flatten();
            Some(Unit::new(&Parameters::of_gcra(gcra?), Cost::Packets))
        })
    }

    /// Debts of every magnitude.
    fn debt() -> impl Strategy<Value = u64> {
        (0u32..=62).prop_flat_map(|bits| 0u64..=1 << bits)
    }

    proptest! {
        /// Against exact rational arithmetic: never less, hardly more, and whole tokens exactly.
        #[test]
        fn owes_the_same_tokens(from in rate(), to in rate(), debt in debt(), now in 0u64..1 << 56) {
            let product = u128::from(debt) * u128::from(to.interval);
            let exact = product.div_ceil(from.interval.into());
            let worth = to.exchange(&from, now, from.ticks(now) + debt) - to.ticks(now);
            if exact >= u128::from(MAX_BURST_OFFSET) {
                prop_assert_eq!(worth, MAX_BURST_OFFSET);
                return Ok(());
            }
            prop_assert!(u128::from(worth) >= exact, "{} of {}", worth, exact);
            if debt % from.interval == 0 {
                prop_assert_eq!(u128::from(worth), exact);
            }
            let most = exact + 1 + u128::from(to.interval >> 29);
            prop_assert!(u128::from(worth) <= most, "{} of {}", worth, exact);
        }

        /// An exchange there and back loses nothing, and a full bucket stays full.
        #[test]
        fn nothing_is_lost_on_the_way_back(
            from in rate(), to in rate(), debt in debt(), now in 0u64..1 << 56,
        ) {
            let tat = from.ticks(now) + debt;
            let there = to.exchange(&from, now, tat);
            if there - to.ticks(now) == MAX_BURST_OFFSET {
                return Ok(());
            }
            let back = from.exchange(&to, now, there);
            prop_assert!(back >= tat);
            prop_assert_eq!(back == from.ticks(now), debt == 0);
        }

        /// With any state, it neither panics nor leaves the range.
        #[test]
        fn any_state_is_safe(from in rate(), to in rate(), now: u64, tat: u64) {
            let exchanged = to.exchange(&from, now, tat);
            prop_assert!(exchanged.saturating_sub(to.ticks(now)) <= MAX_BURST_OFFSET);
        }
    }

    /// Two tokens, where the largest state holds not quite three.
    #[test]
    fn the_last_whole_token_is_no_more_than_that() {
        let interval = MAX_BURST_OFFSET / 3 + 1;
        assert_eq!(super::worth(2, 1, interval), 2 * interval);
        assert_eq!(super::worth(3, 1, interval), MAX_BURST_OFFSET);
        assert_eq!(super::worth(u64::MAX, 1, interval), MAX_BURST_OFFSET);
    }

    #[test]
    fn a_bucket_that_has_refilled_is_full() {
        let (slow, fast) = (unit(1, SECOND), unit(3, 1));
        assert_eq!(fast.exchange(&slow, 500, 0), fast.ticks(500));
        assert_eq!(slow.exchange(&fast, 500, fast.ticks(500)), 500);
        assert_eq!(
            slow.exchange(&fast, 500, fast.ticks(500) + 2),
            500 + 2 * SECOND
        );
    }

    #[test]
    fn a_bucket_of_another_cost_or_an_unknown_unit_owes_nothing() {
        let packets = unit(1, SECOND);
        let bytes = Unit {
            cost: Cost::Bytes as u32,
            ..packets
        };
        let unknown = Unit {
            interval: 0,
            ..packets
        };
        let tat = 9 * SECOND;
        assert_eq!(packets.exchange(&packets, SECOND, tat), tat);
        assert_eq!(bytes.exchange(&packets, SECOND, tat), SECOND);
        assert_eq!(packets.exchange(&unknown, SECOND, tat), SECOND);
    }
}
