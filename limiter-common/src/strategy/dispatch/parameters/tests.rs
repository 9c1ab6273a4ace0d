//! Refunds by operators.

use super::*;
use crate::strategy::moving_window::Cursor;

const SECOND: u64 = 1_000_000_000;
const NOW: u64 = 1_000 * SECOND;

fn remaining(parameters: &Parameters, state: u64) -> u64 {
    parameters.level(NOW, Some(state), &Log::EMPTY).remaining
}

#[test]
fn what_was_spent_is_given_back_and_no_more() {
    for strategy in [
        Strategy::Gcra,
        Strategy::FixedWindow,
        Strategy::SlidingWindowCounter,
    ] {
        let parameters = Parameters::new(strategy, 10, 10, 100 * SECOND).unwrap();
        // A refusal makes a fixed window count one token more.
        let state = (0..12).fold(0, |state, _| {
            let spend = parameters.spend(NOW, 1).unwrap();
            spend.apply(state).state
        });
        assert_eq!(remaining(&parameters, state), 0);
        for (cost, left) in [(1, 1), (4, 4), (10, 10), (u64::MAX, 10)] {
            let state = parameters.refund(NOW, cost).refunded(state);
            assert_eq!(remaining(&parameters, state), left, "{strategy:?} {cost}");
        }
        assert_eq!(parameters.refund(NOW, 3).refunded(0), 0);
    }
}

/// Five packets passed, a second apart, and the windows of the first two have ended.
#[test]
fn the_last_packets_are_taken_out_of_a_log() {
    let mut log = Log::EMPTY;
    let last_but = |nth: u64| NOW + 3 * SECOND - nth * SECOND;
    // The numbers wrap: the next one is 2.
    for (stamp, nth) in [(0, 1), (127, 2), (126, 3), (125, 4)] {
        log.stamps[stamp] = last_but(nth);
    }
    let cursor = Cursor {
        next: 2,
        last: last_but(0),
    };
    let without = |count| cursor.without_last(count, &log, NOW);
    assert_eq!(without(0), cursor);
    for (count, next) in [(1, 1), (2, 0)] {
        let last = last_but(count);
        assert_eq!(without(count), Cursor { next, last });
    }
    for count in [3, 5, 127, 128, u64::MAX] {
        assert_eq!(without(count).state(), 0, "{count}");
    }
}
