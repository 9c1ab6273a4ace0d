//! Giving a bucket tokens back that it has spent: for people, and not for packets.

#[cfg(not(target_arch = "bpf"))]
use super::Budget;
use super::{Spend, Strategy, window::Seen};

#[cfg(not(target_arch = "bpf"))]
impl Budget {
    /// What gives `cost` tokens back at the time `now_ns`, by [`Spend::refunded`].
    #[must_use]
    pub const fn refund(&self, now_ns: u64, cost: u64) -> Spend {
        match self.strategy() {
            Strategy::Gcra => {
                let ticks = cost.saturating_mul(self.gcra.emission_interval);
                Spend::unbounded(self.gcra.ticks(now_ns), ticks)
            }
            Strategy::FixedWindow | Strategy::SlidingWindowCounter | Strategy::MovingWindow => {
                Spend::of_window(&self.window, self.window.layout.ticks(now_ns), cost)
            }
        }
    }
}

impl Spend {
    /// The state of a bucket that has `state` after this was given back, what it owes at most.
    ///
    /// Of windows what was counted in the current bucket of time grows less; that it has refused is
    /// forgotten. Those of moving windows are given back by
    /// [`without_last`](super::moving_window::Cursor::without_last).
    #[must_use]
    #[inline(always)]
    pub const fn refunded(&self, state: u64) -> u64 {
        match self.strategy() {
            Strategy::Gcra => {
                let tat = self.gcra().undo(state);
                if tat > self.now() { tat } else { 0 }
            }
            Strategy::FixedWindow | Strategy::SlidingWindowCounter => {
                let window = self.window();
                let seen = window.see(state, self.now());
                let counted = if seen.count < window.count {
                    seen.count
                } else {
                    window.count
                };
                let count = counted.saturating_sub(self.cost());
                window.state(&Seen { count, ..seen }, self.now())
            }
            Strategy::MovingWindow => state,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::strategy::{
        fixed_window,
        moving_window::{Cursor, Log},
        sliding_window_counter,
    };

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
                let spend = budget.spend(NOW, 1).unwrap();
                match strategy {
                    Strategy::FixedWindow => fixed_window::decide(&spend, state).state,
                    Strategy::SlidingWindowCounter => {
                        sliding_window_counter::decide(&spend, state).state
                    }
                    _ => spend.gcra().apply(state).unwrap_or(state),
                }
            });
            assert_eq!(remaining(&budget, state), 0);
            for (cost, left) in [(1, 1), (4, 4), (10, 10), (u64::MAX, 10)] {
                let state = budget.refund(NOW, cost).refunded(state);
                assert_eq!(remaining(&budget, state), left, "{strategy:?} {cost}");
            }
            assert_eq!(budget.refund(NOW, 3).refunded(0), 0);
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
