//! Giving a bucket tokens back that it has spent: for people, and not for packets.

use super::{Budget, Seen, Spend, Strategy};

impl Budget {
    /// The state of a bucket that has `state` at the time `now_ns` after `cost` tokens were given
    /// back, what it owes at most.
    ///
    /// Of windows what was counted in the current bucket of time grows less; that it has refused is
    /// forgotten. Those of moving windows are given back by
    /// [`without_last`](super::moving_window::Cursor::without_last).
    #[must_use]
    pub const fn refunded(&self, now_ns: u64, state: u64, cost: u64) -> u64 {
        match self.strategy() {
            Strategy::Gcra => {
                let ticks = cost.saturating_mul(self.gcra.emission_interval);
                Spend::unbounded(self.gcra.ticks(now_ns), ticks).undo(state)
            }
            Strategy::FixedWindow | Strategy::SlidingWindowCounter => {
                let now = self.window.layout.ticks(now_ns);
                let seen = self.window.see(state, now);
                let counted = if seen.count < self.window.count {
                    seen.count
                } else {
                    self.window.count
                };
                let count = counted.saturating_sub(cost);
                self.window.state(&Seen { count, ..seen }, now)
            }
            Strategy::MovingWindow => state,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::strategy::moving_window::{Cursor, Log};

    const SECOND: u64 = 1_000_000_000;
    const NOW: u64 = 1_000 * SECOND;

    fn remaining(budget: &Budget, state: u64) -> u64 {
        budget.level(NOW, Some(state), &Log::EMPTY).remaining
    }

    #[test]
    fn what_was_spent_is_given_back_and_no_more() {
        for strategy in [
            Strategy::Gcra,
            Strategy::FixedWindow,
            Strategy::SlidingWindowCounter,
        ] {
            let budget = Budget::new(strategy, 10, 10, 100 * SECOND).unwrap();
            // A fixed window that has refused has counted one more.
            let state = (0..12).fold(0, |state, _| {
                budget.spend(NOW, 1).unwrap().apply(state).state
            });
            assert_eq!(remaining(&budget, state), 0);
            for (cost, left) in [(1, 1), (4, 4), (10, 10), (u64::MAX, 10)] {
                let state = budget.refunded(NOW, state, cost);
                assert_eq!(remaining(&budget, state), left, "{strategy:?} {cost}");
            }
            assert_eq!(remaining(&budget, budget.refunded(NOW, 0, 3)), 10);
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
}
