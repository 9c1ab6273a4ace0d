//! A debt that is saved and restored is the same, for any strategy.

extern crate std;

use proptest::prelude::*;

use crate::{
    limit::Cost,
    strategy::{
        Layout, NO_STATE, Parameters, Strategy as Rule, Unit, moving_window::Cursor,
        window::WindowCounts,
    },
};

const SECOND: u64 = 1_000_000_000;

fn unit(strategy: Rule, count: u64, period_ns: u64) -> Unit {
    let parameters = Parameters::new(strategy, 1, count, period_ns).unwrap();
    Unit::new(&parameters, Cost::Packets)
}

/// A unit of any strategy, or of stamps.
fn any_unit() -> impl Strategy<Value = Unit> {
    let period = (20u32..=50).prop_flat_map(|bits| 1u64 << bits..=2 << bits);
    (0..=Rule::ALL.len(), 1u64..=128, period).prop_map(|(rule, count, period)| {
        Rule::ALL.get(rule).map_or_else(
            || Unit::of_stamps(Cost::Packets),
            |rule| unit(*rule, count, period),
        )
    })
}

/// A time or a duration, in nanoseconds.
fn time() -> impl Strategy<Value = u64> {
    (0u32..56).prop_flat_map(|bits| 1u64 << bits..=2 << bits)
}

/// A possible state of a bucket at a time.
fn state(unit: &Unit, now_ns: u64, part: f64, counts: [u64; 2]) -> u64 {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "any will do"
    )]
    let part_of = |whole: u64| 1 + (part * (whole - 1) as f64) as u64;
    match unit.layout.strategy() {
        Rule::Gcra => unit.ticks(now_ns) + part_of(1 << 50),
        Rule::FixedWindow | Rule::SlidingWindowCounter => {
            let [count, previous] = counts;
            let left = part_of(unit.interval);
            let seen = WindowCounts {
                left,
                count,
                previous,
            };
            unit.window().state(&seen, unit.ticks(now_ns))
        }
        Rule::MovingWindow => Cursor {
            next: counts[0],
            last: now_ns + part_of(1 << 50),
        }
        .state(),
    }
}

/// The length of a tick, in nanoseconds.
fn tick(unit: &Unit) -> u64 {
    unit.layout.ns(1)
}

/// The used part of a bucket: for windows, tokens times the ticks of a period; otherwise the time
/// until it is full.
fn used(unit: &Unit, now_ns: u64, state: u64) -> u64 {
    if !matches!(
        unit.layout.strategy(),
        Rule::FixedWindow | Rule::SlidingWindowCounter
    ) {
        return unit.debt_ns(now_ns, state);
    }
    let seen = unit.window().counts(state, unit.ticks(now_ns));
    seen.count * unit.interval + seen.previous * seen.left.min(unit.interval)
}

proptest! {
    /// A bucket restored under another clock owes as much as a bucket that just waited: never less,
    /// and longer by the rounding of ticks at most.
    #[test]
    fn a_restored_bucket_owes_what_it_would(
        unit in any_unit(),
        now in time(),
        passed in time(),
        later in time(),
        part in 0.0f64..=1.0,
        counts in [0u64..=128, 0u64..=128],
    ) {
        let state = state(&unit, now, part, counts);
        let (waited, waited_ns) = (used(&unit, now + passed, state), unit.debt_ns(now + passed, state));
        let left = unit.left_of(unit.owed(now, state), passed);
        let restored = left.map_or(0, |left| unit.owing(later, 0, left));
        let restored_ns = unit.debt_ns(later, restored);
        prop_assert!(used(&unit, later, restored) >= waited.saturating_sub(rounding(&unit)));
        prop_assert!(restored_ns + rounding(&unit) >= waited_ns, "{restored_ns} < {waited_ns}");
        prop_assert!(restored_ns <= waited_ns + 2 * tick(&unit) + rounding(&unit));
    }

    /// The debt before plus the tokens spent since is the debt now.
    #[test]
    fn what_was_spent_since_adds_up(
        unit in any_unit(),
        now in time(),
        passed in time(),
        part in 0.0f64..=1.0,
        counts in [0u64..=60, 0u64..=60],
        spent in 0u64..=60,
    ) {
        let earlier = state(&unit, now, part, counts);
        let then = now + passed;
        let before = unit.left_of(unit.owed(now, earlier), passed);
        // The tokens spent at the later time.
        let more = unit.owed(then, state(&unit, then, part, [spent, 0]));
        let owed = unit.owed(then, unit.owing(then, earlier, more));
        let since = unit.since(owed, unit.owed(now, earlier), passed).unwrap_or(0);
        let put_back = unit.owing(then, before.map_or(0, |left| unit.owing(then, 0, left)), since);
        let [found, expected] = [put_back, unit.owing(then, 0, owed)].map(|state| used(&unit, then, state));
        // If ticks are longer than a nanosecond, both are rounded, and the previous window counts a
        // tick more or less.
        let rounded = if tick(&unit) > 1 { 2 * counts[1] } else { 0 };
        prop_assert!(found + rounding(&unit) + rounded >= expected, "{found} < {expected}");
        prop_assert_eq!(unit.since(unit.owed(now, earlier), unit.owed(now, earlier), 0), None);
    }

    /// With any state and debt, it neither panics nor returns [`NO_STATE`].
    #[test]
    fn any_word_is_safe(unit in any_unit(), now in time(), passed: u64, state: u64, owed: u64, other: u64) {
        let back = unit.owing(now, state, owed);
        prop_assert!(back != NO_STATE || state == NO_STATE);
        for word in [unit.owed(now, state), owed] {
            if let Some(left) = unit.left_of(word, passed) {
                prop_assert!(unit.debt_ns(0, left) <= unit.debt_ns(0, word));
            }
            let _ = unit.since(word, other, passed);
        }
        prop_assert_eq!(unit.owed(now, state) == 0, unit.debt_ns(now, state) == 0);
    }
}

/// The maximum error of converting the clock to ticks of GCRA, in nanoseconds.
fn rounding(unit: &Unit) -> u64 {
    if unit.is_odd() && unit.layout == Layout::GCRA {
        2
    } else {
        0
    }
}

#[test]
fn debts_grow_less_with_time() {
    let second = unit(Rule::Gcra, 1, SECOND);
    for (owed, passed, expected) in [
        (10, 0, Some(10)),
        (10, 9, Some(1)),
        (10, 10, None),
        (10, u64::MAX, None),
        (0, 0, None),
        (u64::MAX, 5, Some(u64::MAX - 5)),
    ] {
        assert_eq!(second.left_of(owed, passed), expected, "{owed} {passed}");
    }
}

/// The parts of a window's debt.
fn seen(unit: &Unit, owed: u64) -> Option<[u64; 3]> {
    let seen = unit.window().counts(owed, 0);
    (seen.left > 0).then_some([seen.left, seen.count, seen.previous])
}

/// Both windows have ten tokens in 100 s, have counted 4 and end in 30 s; the sliding one had 7 in
/// the previous window.
#[test]
fn windows_end_and_follow_one_another() {
    for strategy in [Rule::FixedWindow, Rule::SlidingWindowCounter] {
        let unit = unit(strategy, 10, 100 * SECOND);
        let slides = strategy == Rule::SlidingWindowCounter;
        let previous = if slides { 7 } else { 0 };
        let ticks = |seconds: u64| unit.ticks(seconds * SECOND);
        let end = WindowCounts {
            left: ticks(30),
            count: 4,
            previous,
        };
        let owed = unit.window().state(&end, 0);
        let left = |seconds: u64| {
            let left = unit.left_of(owed, seconds * SECOND);
            left.and_then(|owed| seen(&unit, owed))
        };
        assert_eq!(left(0), Some([ticks(30), 4, previous]));
        let [then, counts @ ..] = left(29).unwrap();
        assert!(then.abs_diff(ticks(1)) <= 1);
        assert_eq!(counts, [4, previous]);
        if slides {
            let [then, counts @ ..] = left(40).unwrap();
            assert!(then.abs_diff(ticks(90)) <= 2);
            assert_eq!(counts, [0, 4]);
        } else {
            assert_eq!(left(40), None);
        }
        assert_eq!(left(131), None);
    }
}

/// Two counts add up; the later end holds, and no count exceeds its bits.
#[test]
fn counts_add_up() {
    let unit = unit(Rule::SlidingWindowCounter, 10, 100 * SECOND);
    let now = 777 * SECOND;
    let debt = |left, count, previous| {
        let seen = WindowCounts {
            left,
            count,
            previous,
        };
        unit.window().state(&seen, 0)
    };
    let both = |one, other| {
        let state = unit.owing(now, unit.owing(now, 0, one), other);
        seen(&unit, unit.owed(now, state)).unwrap()
    };
    let [left, counts @ ..] = both(debt(50, 3, 2), debt(70, 4, 1));
    assert!((70..=71).contains(&left));
    assert_eq!(counts, [7, 3]);
    let [_, count, _] = both(debt(50, 11, 0), debt(50, 11, 0));
    assert!((11..=14).contains(&count), "{count}");
}

/// The later log holds, and the later TAT of each stamp.
#[test]
fn the_later_log_holds() {
    let (cursors, stamps) = (
        unit(Rule::MovingWindow, 5, SECOND),
        Unit::of_stamps(Cost::Packets),
    );
    let now = 1_000 * SECOND;
    let cursor = |next, left| Cursor { next, last: left }.state();
    let put = |unit: &Unit, debts: &[u64]| {
        let state = debts
            .iter()
            .fold(0, |state, debt| unit.owing(now, state, *debt));
        unit.owed(now, state)
    };
    let (one, other) = (cursor(9, 500), cursor(3, 700));
    for debts in [[one, other], [other, one]] {
        assert_eq!(put(&cursors, &debts), other);
    }
    assert_eq!(put(&stamps, &[500, 700, 600]), 700);
    assert_eq!(cursors.since(other, one, 10), Some(other));
    assert_eq!(cursors.since(cursor(9, 490), one, 10), None);
    assert_eq!(stamps.since(490, 500, 10), None);
    assert_eq!(stamps.since(700, 500, 10), Some(700));
    assert_eq!(
        [stamps, cursors].map(|unit| unit.is_of_stamps()),
        [true, false]
    );
}
