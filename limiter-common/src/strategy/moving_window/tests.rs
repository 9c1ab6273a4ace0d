//! Tables and properties of cursors, and of decisions by them.

extern crate std;

use proptest::prelude::*;

use super::*;
use crate::strategy::{NEVER, NO_STATE, Parameters, Strategy as Rule};

const SECOND: u64 = 1_000_000_000;

/// The time at which a cursor's TAT wraps, in nanoseconds.
const WRAP: u64 = 1 << (u64::BITS - NUMBER_BITS);

fn parameters(count: u64, period_ns: u64) -> Parameters {
    Parameters::new(Rule::MovingWindow, 0, count, period_ns).unwrap()
}

/// Decides on a cursor; the `count`-th last packet has the TAT `oldest`.
fn decided(parameters: &Parameters, now: u64, cursor: Cursor, oldest: u64) -> Decision {
    let spend = parameters.spend(now, 1).unwrap();
    decide(&spend, cursor.state(), cursor, oldest)
}

#[test]
fn the_oldest_is_as_old_as_the_period_or_it_is_refused() {
    let parameters = parameters(10, 60 * SECOND);
    let now = 1_000 * SECOND;
    let cursor = Cursor {
        next: 10,
        last: now + 50 * SECOND,
    };
    let refused = |wait| Decision::refuse(cursor.state(), wait);
    assert_eq!(decided(&parameters, now, cursor, now + 1), refused(1));
    assert_eq!(
        decided(&parameters, now, cursor, now + 8 * SECOND),
        refused(8 * SECOND)
    );
    let moved = Cursor {
        next: 11,
        last: now + 60 * SECOND,
    };
    for oldest in [now, now - 1, 0] {
        let passed = Decision::pass(moved.state());
        assert_eq!(
            decided(&parameters, now, cursor, oldest),
            passed,
            "{oldest}"
        );
    }
}

#[test]
fn numbers_of_stamps_go_round() {
    let parameters = parameters(128, SECOND);
    let last = Cursor {
        next: STAMPS - 1,
        last: 5 * SECOND,
    };
    let moved = decided(&parameters, 5 * SECOND, last, 0).state;
    assert_eq!(Cursor::of_state(moved, 5 * SECOND).next, 0);
    let at = |next, nth| Cursor { next, last: 0 }.stamp(nth);
    assert_eq!([at(5, 1), at(5, 5), at(5, 6), at(5, 128)], [4, 0, 127, 5]);
}

/// A packet passes by the clock of a CPU that is ahead, then one by a clock that is behind.
#[test]
fn tats_never_go_back() {
    let (parameters, now) = (parameters(2, 60 * SECOND), 1_000 * SECOND);
    for (ahead, behind) in [
        (0, 0),
        (5_000, 5_000),
        (MOST_BEHIND, MOST_BEHIND),
        // Clocks never differ that much: the limit's period was longer.
        (MOST_BEHIND + 1, 0),
    ] {
        let cursor = Cursor {
            next: 1,
            last: now + 60 * SECOND + ahead,
        };
        let moved = decided(&parameters, now, cursor, 0).state;
        let last = now + 60 * SECOND + behind;
        assert_eq!(Cursor::of_state(moved, now), Cursor { next: 2, last });
    }
}

/// A cost of several packets may exceed the limit.
#[test]
fn cost_above_the_limit() {
    assert!(parameters(3, SECOND).spend(SECOND, 3).is_ok());
    assert!(parameters(3, SECOND).spend(SECOND, 4).is_err());
    // By the state alone it never passes.
    let spend = parameters(3, SECOND).spend(SECOND, 1).unwrap();
    assert_eq!(spend.apply(0), Decision::refuse(0, NEVER));
}

#[test]
fn only_what_there_is_room_for() {
    let is_some = |count, period| Parameters::new(Rule::MovingWindow, 0, count, period).is_some();
    assert!(is_some(1, 1) && is_some(STAMPS, MAX_PERIOD));
    assert!(!is_some(0, 1) && !is_some(STAMPS + 1, 1));
    assert!(!is_some(1, 0) && !is_some(1, MAX_PERIOD + 1));
}

/// Two states have another meaning to a table; a cursor that would equal one of them becomes a
/// nanosecond later.
#[test]
fn no_cursor_is_locked_or_full() {
    for (next, last) in [(0, WRAP), (STAMPS - 1, WRAP - 1), (0, 5 * WRAP)] {
        let cursor = Cursor { next, last };
        let now = last - SECOND;
        let later = Cursor {
            next,
            last: last + 1,
        };
        assert!(![0, NO_STATE].contains(&cursor.state()), "{cursor:?}");
        assert_eq!(Cursor::of_state(cursor.state(), now), later);
    }
    assert_eq!(Cursor { next: 0, last: 0 }.state(), 0);
}

#[test]
fn a_tat_that_has_passed_by_any_clock_is_none() {
    let cursor = Cursor {
        next: 3,
        last: 3 * MAX_PERIOD,
    };
    for (now, last) in [
        (cursor.last - 2 * MAX_PERIOD - 1, 0),
        (cursor.last - 2 * MAX_PERIOD, cursor.last),
        (cursor.last - 1, cursor.last),
        (cursor.last, cursor.last),
        // By the clock of another CPU, the TAT has not passed yet.
        (cursor.last + 1, cursor.last),
        (cursor.last + MOST_BEHIND, cursor.last),
        (cursor.last + MOST_BEHIND + 1, 0),
        (cursor.last + MAX_PERIOD, 0),
    ] {
        let seen = Cursor::of_state(cursor.state(), now);
        assert_eq!(seen, Cursor { next: 3, last }, "{now}");
    }
    assert_eq!(Cursor::of_state(0, 7), Cursor { next: 0, last: 0 });
}

proptest! {
    /// Even if the time has wrapped in between.
    #[test]
    fn is_read_as_it_was_written(
        next in 0..STAMPS, now in 0u64..1 << 62, ahead in 1u64..=2 * MAX_PERIOD,
    ) {
        let cursor = Cursor { next, last: now + ahead };
        let state = cursor.state();
        prop_assert!(state != NO_STATE && state != 0);
        let seen = Cursor::of_state(state, now);
        prop_assert_eq!(seen.next, next);
        prop_assert!(seen.last - cursor.last <= 1);
    }

    /// With any state and any time, it neither panics nor locks the bucket.
    #[test]
    fn any_state_is_safe(state: u64, now: u64, oldest: u64, count in 1..=STAMPS, period in 1..=MAX_PERIOD) {
        let cursor = Cursor::of_state(state, now);
        prop_assert!(cursor.next < STAMPS);
        let decision = decided(&parameters(count, period), now, cursor, oldest);
        prop_assert_ne!(decision.state, NO_STATE);
        prop_assert_eq!(decision.passes(), oldest <= now);
    }
}
