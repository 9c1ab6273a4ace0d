//! Tables and properties of the sliding window counter.

extern crate std;

use proptest::prelude::*;

use super::{
    super::one_bucket::{OneBucket, window},
    *,
};
use crate::strategy::{Layout, NO_STATE, Strategy as Rule};

const SECOND: u64 = 1_000_000_000;
const START: u64 = 10_000 * SECOND;

/// The length of a window of [`forty_before`].
const PERIOD: u64 = 6 * SECOND;

/// The end of its first window.
const SHIFT: u64 = START + PERIOD;

/// 100 in six seconds, in ticks of a nanosecond, with 40 in the first window.
fn forty_before() -> OneBucket {
    let mut bucket = OneBucket::new(Rule::SlidingWindowCounter, 100, PERIOD);
    assert_eq!(bucket.tick_ns(), 1);
    assert!(bucket.passes(START, 15));
    assert!(bucket.passes(START + PERIOD - 1, 25));
    bucket
}

/// The example of the documentation: 40 before and 80 now, 100 per minute.
#[test]
fn worked_example() {
    const MINUTE: u64 = 60 * SECOND;
    for (seconds, passes) in [(30, false), (40, true)] {
        let mut bucket = OneBucket::new(Rule::SlidingWindowCounter, 100, MINUTE);
        assert!(bucket.passes(START, 40));
        // Half of the 40 before is left by then.
        let shift = START + MINUTE;
        assert!(!bucket.passes(shift + 30 * SECOND - 1, 80));
        assert!(bucket.passes(shift + 30 * SECOND, 80));
        let now = shift + seconds * SECOND;
        assert_eq!(bucket.passes(now, 1), passes, "{seconds} s");
    }
}

/// The number that pass with 40 in the previous window, by the time since its end.
#[test]
fn the_one_before_weighs_by_what_is_left() {
    for (later, left) in [
        (0, 60),
        // 40 × left / period, rounded up: 39.999…
        (1, 60),
        (PERIOD / 40 - 1, 60),
        (PERIOD / 40, 61),
        (PERIOD / 4, 70),
        (PERIOD / 2 - 1, 79),
        (PERIOD / 2, 80),
        (PERIOD / 2 + 1, 80),
        (PERIOD * 3 / 4, 90),
        (PERIOD - PERIOD / 40 - 1, 98),
        (PERIOD - PERIOD / 40, 99),
        (PERIOD - 1, 99),
        // After a whole window without a packet, the sequence starts anew.
        (PERIOD, 100),
        (PERIOD + 1, 100),
        (50 * PERIOD, 100),
    ] {
        let mut bucket = forty_before();
        let now = SHIFT + later;
        assert_eq!(bucket.remaining(now), left, "{later} ns");
        if left < 100 {
            assert!(!bucket.passes(now, left + 1), "{later} ns");
        }
        assert!(bucket.passes(now, left), "{later} ns");
        assert!(!bucket.passes(now, 1), "{later} ns");
    }
}

#[test]
fn windows_follow_each_other_at_once() {
    let mut bucket = forty_before();
    // The window began at the end of the previous one, not with this packet.
    assert!(bucket.passes(SHIFT + PERIOD / 2, 50));
    assert_eq!(bucket.remaining(SHIFT + PERIOD - 1), 49);
    assert_eq!(bucket.remaining(SHIFT + PERIOD), 50);
    assert_eq!(bucket.remaining(SHIFT + PERIOD * 3 / 2), 75);
    assert_eq!(bucket.remaining(SHIFT + 2 * PERIOD), 100);
}

#[test]
fn what_is_refused_leaves_no_trace() {
    for cost in [61, 100] {
        let mut bucket = forty_before();
        let before = bucket.state;
        assert!(!bucket.passes(SHIFT, cost));
        assert_eq!(bucket.state, before, "{cost}");
    }
    // A cost above the limit is refused before any look-up.
    assert!(forty_before().parameters.spend(SHIFT, 101).is_err());
}

#[test]
fn the_wait_is_exact() {
    for (now, spent, cost) in [
        (SHIFT, 60, 1),
        (SHIFT + PERIOD / 2, 80, 1),
        (SHIFT + PERIOD - 1, 99, 1),
        (SHIFT + 12_345, 7, 60),
        // Not before the next window, where the 70 count as previous.
        (SHIFT + PERIOD / 2, 70, 40),
        (SHIFT + 12_345, 60, 100),
    ] {
        let mut bucket = forty_before();
        assert!(bucket.passes(now, spent));
        let wait = bucket.decide(now, cost).wait;
        assert!(wait > 0 && wait <= 2 * PERIOD, "{now} {cost}");
        assert!(!bucket.decide(now + wait - 1, cost).passes());
        assert!(bucket.decide(now + wait, cost).passes());
    }
}

#[test]
fn cost_of_nothing() {
    let mut bucket = OneBucket::new(Rule::SlidingWindowCounter, 100, PERIOD);
    assert!(bucket.passes(START, 0));
    assert_eq!(bucket.state, 0, "it begins no window");
    assert!(bucket.passes(START, 100));
    assert!(bucket.passes(START, 0));
}

#[test]
fn refunds_are_of_the_same_window() {
    let mut bucket = forty_before();
    assert!(bucket.passes(SHIFT, 10));
    bucket.refund(SHIFT, 4);
    assert_eq!(bucket.remaining(SHIFT), 54);
    bucket.refund(SHIFT, 100);
    assert_eq!(bucket.remaining(SHIFT), 60, "never more than was spent");

    // The window that counted the tokens has ended.
    let mut bucket = forty_before();
    let before = bucket.state;
    bucket.refund(SHIFT, 40);
    assert_eq!(bucket.state, before);
    assert!(bucket.passes(SHIFT, 10));
    let before = bucket.state;
    bucket.refund(SHIFT - 1, 10);
    assert_eq!(bucket.state, before);

    let mut bucket = OneBucket::new(Rule::SlidingWindowCounter, 100, PERIOD);
    bucket.refund(START, 1);
    assert_eq!(bucket.state, 0);
    bucket.passes(START, 1);
    bucket.refund(START, 1);
    assert_eq!(bucket.state, 0, "it is full again");
}

/// The clock of another CPU is five microseconds ahead or behind.
#[test]
fn clocks_of_two_cpus() {
    const APART: u64 = 5_000;
    let mut bucket = forty_before();
    // One clock is past the shift; by the other, the previous window counts in full.
    assert!(bucket.passes(SHIFT, 50));
    assert_eq!(bucket.remaining(SHIFT - APART), 10);
    assert!(bucket.passes(SHIFT - APART, 10));
    assert!(!bucket.passes(SHIFT - APART, 1));
    assert!(!bucket.passes(SHIFT, 1));
    assert!(bucket.passes(SHIFT + PERIOD / 40, 1));

    // One CPU has begun the window, by a clock that is ahead.
    let mut bucket = OneBucket::new(Rule::SlidingWindowCounter, 100, PERIOD);
    assert!(bucket.passes(START + APART, 60));
    assert!(bucket.passes(START, 40));
    assert!(!bucket.passes(START, 1));
    assert!(!bucket.passes(START + APART, 1));
}

/// With the fewest possible bits of the time.
#[test]
fn time_wraps() {
    let largest = Layout::LARGEST_COUNT_WITH_PREVIOUS;
    let mut bucket = OneBucket::new(Rule::SlidingWindowCounter, largest, SECOND);
    let tick = bucket.tick_ns();
    let window = bucket.parameters.window;
    let period = window.layout.ns(window.period);
    assert!(SECOND <= period && period <= SECOND + 2 * tick);
    let wrap = tick << 20;
    for begins in [
        wrap - period / 2,
        wrap - period,
        wrap - tick,
        wrap,
        7 * wrap - 3 * tick,
    ] {
        assert!(bucket.passes(begins, largest), "{begins}");
        assert!(!bucket.passes(begins + period - 1, 1), "{begins}");
        assert!(!bucket.passes(begins + period, 1), "{begins}");
        assert!(
            bucket.passes(begins + period * 3 / 2, largest / 3),
            "{begins}"
        );
        // In the next window, this is the previous one.
        assert!(!bucket.passes(begins + 2 * period, largest), "{begins}");
        assert!(bucket.passes(begins + 3 * period, largest), "{begins}");
        bucket.state = 0;
    }
}

#[test]
fn counts_near_the_largest() {
    const MONTH: u64 = 30 * 86_400 * SECOND;
    for count in (2..=30).flat_map(|bits| (1 << bits) - 3..=1 << bits) {
        if count > Layout::LARGEST_COUNT_WITH_PREVIOUS {
            continue;
        }
        let mut bucket = OneBucket::new(Rule::SlidingWindowCounter, count, MONTH);
        assert!(bucket.passes(START, 1), "{count}");
        assert!(bucket.passes(START, count - 1), "{count}");
        assert_eq!(bucket.remaining(START), 0);
        assert!(!bucket.passes(START, 1), "{count}");
        let shift = START
            + bucket
                .parameters
                .window
                .layout
                .ns(bucket.parameters.window.period);
        assert!(!bucket.passes(shift, 1), "{count}: all before count");
        assert_ne!(bucket.state, NO_STATE);
    }
}

proptest! {
    /// `previous × left + current × period + cost × period ≤ count × period`, in as many bits as
    /// necessary.
    #[test]
    fn decides_as_the_formula_says(
        count in 1u64..10_000, period in 1u64..1 << 40, cost in 0u64..10_000,
        counts in (0u64..20_000, 0u64..20_000), elapsed: u64, now in 1u64 << 40..1 << 60,
    ) {
        let window = window(Rule::SlidingWindowCounter, count, period).unwrap();
        let cost = cost.min(count);
        let seen = WindowCounts {
            left: window.period - elapsed % window.period,
            count: counts.0.min(count),
            previous: counts.1.min(count),
        };
        let now = window.layout.ticks(now);
        let state = window.state(&seen, now);
        let seen = if state == 0 { WindowCounts { left: window.period, ..seen } } else { seen };
        let decision = Spend::of_window(&window, now, cost).apply(state);
        let [period, count, left, current, previous, cost] =
            [window.period, count, seen.left, seen.count, seen.previous, cost].map(u128::from);
        let passes = previous * left + (current + cost) * period <= count * period;
        prop_assert_eq!(decision.passes(), passes);
        // A cost passes at once exactly if it is at most the reported remaining tokens. A cost of 0 may differ, because
        // more tokens may be taken than there are.
        let remaining = u128::from(remaining(&window, state, now));
        prop_assert!(passes == (cost <= remaining) || cost == 0);
    }

    /// A refused packet passes after the reported wait, and not a tick earlier.
    #[test]
    fn any_wait_is_exact(
        count in 1u64..10_000, period in 1u64..1 << 40, cost in 1u64..10_000,
        counts in (0u64..10_000, 0u64..10_000), elapsed: u64, now in 1u64 << 40..1 << 60,
    ) {
        let window = window(Rule::SlidingWindowCounter, count, period).unwrap();
        let seen = WindowCounts {
            left: window.period - elapsed % window.period,
            count: counts.0.min(count),
            previous: counts.1.min(count),
        };
        let now = window.layout.ticks(now);
        let state = window.state(&seen, now);
        let decide_at = |now| Spend::of_window(&window, now, cost.min(count)).apply(state);
        let wait = decide_at(now).wait;
        prop_assume!(wait > 0);
        prop_assert!(decide_at(now + wait).passes());
        prop_assert!(!decide_at(now + wait - 1).passes());
    }

    /// With any state and any time, it neither panics nor locks the bucket.
    #[test]
    fn any_state_is_safe(
        count in (0u32..=30).prop_flat_map(|bits| (1u64 << bits) / 2..=1 << bits),
        period in 1u64..1 << 62,
        state in any::<u64>().prop_filter("no state", |state| *state != NO_STATE),
        now: u64,
        cost: u64,
    ) {
        let Some(window) = window(Rule::SlidingWindowCounter, count, period) else {
            return Ok(());
        };
        let now = window.layout.ticks(now);
        let spend = Spend::of_window(&window, now, cost % (count + 1));
        prop_assert_ne!(spend.apply(state).state, NO_STATE);
        prop_assert_ne!(spend.undo(state), NO_STATE);
        prop_assert!(remaining(&window, spend.undo(state), now) <= count);
    }
}
