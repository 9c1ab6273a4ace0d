//! The states of any possible window are read as they were written.

extern crate std;

use proptest::prelude::*;

use super::{super::one_bucket::window as of, Layout, Window, WindowCounts};
use crate::strategy::{NO_STATE, Strategy as Rule, gcra::MAX_BURST_OFFSET};

/// Any window that can be counted.
fn window() -> impl Strategy<Value = Window> {
    let rule = prop_oneof![Just(Rule::FixedWindow), Just(Rule::SlidingWindowCounter)];
    let up_to = |bits| (0u32..bits).prop_flat_map(|bits| 1u64 << bits..=2 << bits);
    (rule, up_to(44), up_to(62)).prop_filter_map("a window", |(rule, count, period)| {
        of(
            rule,
            count.min(rule.largest_count()),
            period.min(MAX_BURST_OFFSET),
        )
    })
}

#[test]
fn as_many_tokens_as_a_strategy_says() {
    for rule in [Rule::FixedWindow, Rule::SlidingWindowCounter] {
        for period in [1, 1_000_000_000, MAX_BURST_OFFSET] {
            assert!(of(rule, rule.largest_count(), period).is_some());
            assert!(of(rule, rule.largest_count() + 1, period).is_none());
            assert!(of(rule, u64::MAX, period).is_none());
            assert!(of(rule, 0, period).is_none());
        }
        assert!(of(rule, 1, 0).is_none());
        assert!(of(rule, 1, MAX_BURST_OFFSET + 1).is_none());
    }
}

proptest! {
    /// The time and the count are exact; the previous count is never too small, and too large by at
    /// most a 4000th of the limit.
    #[test]
    fn is_read_as_it_was_written(
        window in window(), now: u64, left: u64, count: u64, previous: u64,
    ) {
        let now = window.layout.ticks(now);
        let most = window.count + 1;
        let seen = WindowCounts {
            left: 1 + left % (2 * window.period),
            count: count % (most + 1),
            previous: if window.layout.keeps_previous() { previous % (window.count + 1) } else { 0 },
        };
        let state = window.state(&seen, now);
        prop_assert_ne!(state, NO_STATE);
        prop_assert_eq!(state == 0, seen.count == 0 && seen.previous == 0);
        if state == 0 {
            prop_assert_eq!(window.counts(state, now), WindowCounts::NONE);
            return Ok(());
        }
        let read = window.counts(state, now);
        prop_assert_eq!((read.left, read.count), (seen.left, seen.count));
        prop_assert!(read.previous >= seen.previous);
        prop_assert!(read.previous - seen.previous <= window.count / 4_000, "{:?}", read);
    }

    /// A window lasts at least its period, and at most two ticks longer.
    #[test]
    fn is_not_shorter_than_configured(
        rule in prop_oneof![Just(Rule::FixedWindow), Just(Rule::SlidingWindowCounter)],
        count in 1u64..1 << 30, period in 1u64..1 << 61, now in 0u64..1 << 61,
    ) {
        let window = of(rule, count.min(rule.largest_count()), period).unwrap();
        let Window { layout, .. } = window;
        let tick = layout.ns(1);
        // The earliest end of a window that began within that tick.
        let ended = layout.ns(layout.ticks(now) + window.period);
        prop_assert!(ended >= now + period);
        prop_assert!(ended - (now + period) <= 2 * tick);
        prop_assert!(tick == 1 || tick <= period / 2_000, "{} of {}", tick, period);
    }

    /// A window that has ended stays over until the time wraps, at the earliest after a hundred
    /// periods.
    #[test]
    fn is_over_once_it_has_ended(window in window(), now: u64, later: u64) {
        let now = window.layout.ticks(now);
        let seen = WindowCounts { left: window.period, count: 1, previous: 0 };
        let state = window.state(&seen, now);
        let kept = if window.layout.keeps_previous() { 2 } else { 1 };
        let later = now.wrapping_add(window.period * (kept + later % 100));
        prop_assert_eq!(window.counts(state, later), WindowCounts::NONE);
        prop_assert_eq!(window.until_forgotten(state, later), 0);
    }

    /// The bytes of a layout are read as the same layout.
    #[test]
    fn a_layout_is_read_as_it_was_written(window in window()) {
        prop_assert_eq!(Layout::from_parts(window.layout.parts()), Some(window.layout));
    }
}
