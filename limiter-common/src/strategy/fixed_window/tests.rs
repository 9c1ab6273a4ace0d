//! Tables and properties of the fixed window.

extern crate std;

use proptest::prelude::*;

use super::{
    super::one_bucket::{OneBucket, window},
    *,
};
use crate::strategy::{Layout, NO_STATE, Strategy as Rule};

const SECOND: u64 = 1_000_000_000;
const MINUTE: u64 = 60 * SECOND;

/// At 00:00:45.
const START: u64 = 1_000 * MINUTE + 45 * SECOND;

/// 10 per minute, in ticks of a nanosecond.
fn ten_per_minute() -> OneBucket {
    let bucket = OneBucket::new(Rule::FixedWindow, 10, MINUTE);
    assert_eq!(bucket.tick_ns(), 1);
    bucket
}

/// Checks that exactly `left` packets pass.
fn assert_left(bucket: &mut OneBucket, now: u64, left: u64) {
    assert_eq!(bucket.remaining(now), left, "at {now}");
    for number in 0..left {
        assert!(bucket.passes(now, 1), "{number} at {now}");
    }
    assert!(!bucket.passes(now, 1), "one more at {now}");
}

/// The example of the documentation: from 00:00:45 to 00:01:45, and from then to 00:02:45.
#[test]
fn worked_example() {
    let mut bucket = ten_per_minute();
    assert!(bucket.passes(START, 1));
    for second in [1, 7, 14, 15, 30, 31, 32, 58] {
        assert!(bucket.passes(START + second * SECOND, 1), "{second}");
    }
    assert_left(&mut bucket, START + 59 * SECOND, 1);
    assert!(!bucket.passes(START + MINUTE - 1, 1));
    assert_left(&mut bucket, START + MINUTE, 10);
    assert!(!bucket.passes(START + 2 * MINUTE - 1, 1));
    assert!(bucket.passes(START + 2 * MINUTE, 1));
}

#[test]
fn ends_exactly_a_period_after_its_first_packet() {
    for (later, left) in [(MINUTE - 1, 7), (MINUTE, 10), (MINUTE + 1, 10)] {
        let mut bucket = ten_per_minute();
        for second in 0..3 {
            assert!(bucket.passes(START + second * SECOND, 1));
        }
        assert_left(&mut bucket, START + later, left);
    }
}

#[test]
fn the_wait_is_exact_and_what_is_refused_does_not_make_it_longer() {
    let mut bucket = ten_per_minute();
    assert_left(&mut bucket, START, 10);
    for later in [0, 1, 30 * SECOND, MINUTE - 1] {
        let decision = bucket.decide(START + later, 1);
        assert_eq!(decision.wait, MINUTE - later);
        bucket.state = decision.state;
    }
    assert!(bucket.passes(START + MINUTE, 1));
}

/// With bytes: 600 of a thousand are left, and a longer frame takes them with it.
#[test]
fn a_refused_burst_fills_it() {
    let mut bucket = OneBucket::new(Rule::FixedWindow, 1_000, MINUTE);
    assert!(bucket.passes(START, 400));
    assert!(!bucket.passes(START + SECOND, 601));
    assert!(!bucket.passes(START + 2 * SECOND, 1));
    assert!(!bucket.passes(START + MINUTE - 1, 1));
    assert!(bucket.passes(START + MINUTE, 1_000));

    let mut exact = OneBucket::new(Rule::FixedWindow, 1_000, MINUTE);
    assert!(exact.passes(START, 400));
    assert!(exact.passes(START, 600));
    assert!(!exact.passes(START, 1));
}

/// It never passes, and counts like every refused packet, even as the first.
#[test]
fn cost_above_the_limit() {
    let mut bucket = ten_per_minute();
    for (now, cost) in [(START, 11), (START + SECOND, u64::MAX)] {
        let decision = bucket.decide(now, cost);
        assert_eq!(decision.wait, NEVER, "{cost}");
        bucket.state = decision.state;
        assert!(!bucket.passes(now, 1));
    }
    assert!(!bucket.passes(START + MINUTE - 1, 1));
    assert!(bucket.passes(START + MINUTE, 10));
}

#[test]
fn cost_of_nothing() {
    let mut bucket = ten_per_minute();
    assert!(bucket.passes(START, 0));
    assert_eq!(bucket.state, 0, "it begins no window");
    for _ in 0..10 {
        bucket.passes(START + SECOND, 1);
    }
    assert!(bucket.passes(START + SECOND, 0));
    bucket.passes(START + SECOND, 1);
    assert!(!bucket.passes(START + SECOND, 0), "it has refused");
    assert!(bucket.passes(START + SECOND + MINUTE, 0));
}

#[test]
fn refunds_are_of_the_same_window() {
    let mut bucket = ten_per_minute();
    bucket.passes(START, 4);
    bucket.refund(START, 3);
    assert_eq!(bucket.remaining(START), 9);
    bucket.refund(START, 3);
    assert_eq!(bucket.state, 0, "never more than was spent");
    bucket.refund(START, 3);
    assert_eq!(bucket.state, 0);

    // The window that counted the tokens has ended.
    bucket.passes(START, 4);
    bucket.passes(START + MINUTE, 4);
    bucket.refund(START, 4);
    assert_eq!(bucket.remaining(START + MINUTE), 6);
    bucket.refund(START + 2 * MINUTE, 4);
    assert_eq!(bucket.remaining(START + MINUTE), 6);

    // A window that has refused stays full.
    bucket.passes(START + MINUTE, 7);
    bucket.refund(START + MINUTE, 4);
    assert_left(&mut bucket, START + 2 * MINUTE - 1, 0);
}

/// The clock of another CPU is five microseconds ahead of, or behind, the clock that began the
/// window.
#[test]
fn clocks_of_two_cpus() {
    const APART: u64 = 5_000;
    for first in [START, START + APART] {
        let mut bucket = ten_per_minute();
        assert!(bucket.passes(first, 1));
        for now in [START, START + APART, START, START + APART] {
            assert!(bucket.passes(now, 2), "one window for both");
        }
        assert_left(&mut bucket, START, 1);
        let ends = first + MINUTE;
        assert!(!bucket.passes(ends - 1, 1));
        // Both CPUs share the next window too.
        assert!(bucket.passes(ends, 1));
        assert_left(&mut bucket, ends - APART, 9);
        assert_left(&mut bucket, ends + APART, 0);
    }
}

/// With the fewest possible bits of the time.
#[test]
fn time_wraps() {
    let mut bucket = OneBucket::new(Rule::FixedWindow, Layout::LARGEST_COUNT, SECOND);
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
        assert!(bucket.passes(begins, Layout::LARGEST_COUNT), "{begins}");
        assert_eq!(bucket.remaining(begins), 0);
        assert!(!bucket.passes(begins + period - 1, 1), "{begins}");
        assert!(bucket.passes(begins + period, 1), "{begins}");
        bucket.state = 0;
    }
}

#[test]
fn counts_near_the_largest() {
    for count in (2..=44).flat_map(|bits| (1 << bits) - 3..=1 << bits) {
        if count > Layout::LARGEST_COUNT {
            continue;
        }
        let mut bucket = OneBucket::new(Rule::FixedWindow, count, 30 * 24 * 60 * MINUTE);
        assert!(bucket.passes(START, 1), "{count}");
        assert!(bucket.passes(START, count - 1), "{count}");
        assert_eq!(bucket.remaining(START), 0);
        assert!(!bucket.passes(START, 1), "{count}");
        assert!(!bucket.passes(START, u64::MAX), "{count}");
        assert_eq!(bucket.remaining(START), 0);
        assert_ne!(bucket.state, NO_STATE);
    }
}

proptest! {
    /// With any state and any time, it neither panics, passes too much nor locks the bucket.
    #[test]
    fn any_state_is_safe(
        count in (0u32..=44).prop_flat_map(|bits| (1u64 << bits) / 2..=1 << bits),
        period in 1u64..1 << 62,
        state in any::<u64>().prop_filter("no state", |state| *state != NO_STATE),
        now: u64,
        cost in prop_oneof![0u64..100, any::<u64>()],
    ) {
        let Some(window) = window(Rule::FixedWindow, count, period) else {
            return Ok(());
        };
        let now = window.layout.ticks(now);
        let spend = Spend::of_window(&window, now, cost);
        let remaining = |state| window.count.saturating_sub(window.counts(state, now).count);
        let decision = spend.apply(state);
        prop_assert_ne!(decision.state, NO_STATE);
        prop_assert_eq!(decision.passes(), cost <= remaining(state)
            && window.counts(state, now).count <= count);
        prop_assert_ne!(spend.undo(state), NO_STATE);
        prop_assert!(remaining(spend.undo(state)) <= count);
    }
}
