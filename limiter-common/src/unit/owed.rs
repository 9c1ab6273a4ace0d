//! What a bucket owes, apart from the time: to be kept, and put back where the clock is another.
//!
//! A debt is a state as it is at the time 0. Of GCRA that is a number of ticks; of windows it is
//! their word, and of moving windows the cursor, with the time that is left in place of the end.

use super::Unit;
use crate::{
    strategy::{Seen, Spend, Strategy, moving_window::Cursor},
    table::LOCKED,
};

impl Unit {
    /// What a bucket of that state owes at the time `now_ns`; 0: nothing, it is full.
    #[must_use]
    pub fn owed(&self, now_ns: u64, state: u64) -> u64 {
        match self.layout.strategy() {
            Strategy::Gcra => state.saturating_sub(self.ticks(now_ns)),
            Strategy::FixedWindow | Strategy::SlidingWindowCounter => {
                let window = self.window();
                let seen = window.see(state, self.ticks(now_ns));
                let left = seen.left.min(window.period);
                window.state(&Seen { left, ..seen }, 0)
            }
            Strategy::MovingWindow => {
                let cursor = Cursor::of_state(state, now_ns);
                match cursor.last.saturating_sub(now_ns) {
                    0 => 0,
                    last => Cursor { last, ..cursor }.state(),
                }
            }
        }
    }

    /// What is left of a debt after `passed_ns`; `None`: nothing.
    #[must_use]
    pub fn left_of(&self, owed: u64, passed_ns: u64) -> Option<u64> {
        // In nanoseconds first: the ticks of a time that is longer may not fit.
        if self.debt_ns(0, owed) <= passed_ns {
            return None;
        }
        Some(self.owed(passed_ns, owed)).filter(|left| *left > 0)
    }

    /// What of a debt was spent since a bucket had the debt `earlier`, `passed_ns` before; `None`:
    /// nothing. [`Self::owing`] puts it on top of what is left of the earlier one.
    #[must_use]
    pub fn since(&self, owed: u64, earlier: u64, passed_ns: u64) -> Option<u64> {
        // Of a bucket that was full in between, all that it owes was spent since.
        let before = self.left_of(earlier, passed_ns).unwrap_or(0);
        let spent = match self.layout.strategy() {
            Strategy::Gcra if !self.is_of_stamps() => owed.saturating_sub(before),
            // Of these the latest is enough.
            Strategy::Gcra | Strategy::MovingWindow if owed == before => 0,
            Strategy::Gcra | Strategy::MovingWindow => owed,
            Strategy::FixedWindow | Strategy::SlidingWindowCounter => {
                let window = self.window();
                let (now, before) = (window.see(owed, 0), window.see(before, 0));
                // The same bucket of time, for what was rounded may make a tick of difference where
                // that is longer than a nanosecond.
                let rounded = u64::from(self.layout.ns(1) > 1);
                let spent = if now.left.abs_diff(before.left) <= rounded {
                    Seen {
                        left: now.left,
                        count: now.count.saturating_sub(before.count),
                        previous: now.previous.saturating_sub(before.previous),
                    }
                } else {
                    now
                };
                window.state(&spent, 0)
            }
        };
        Some(spent).filter(|spent| *spent > 0)
    }

    /// What adds a debt to whatever a bucket owes at the time `now_ns`, as [`Self::owing`] does;
    /// `None`: that takes the state.
    #[must_use]
    pub fn adding(&self, now_ns: u64, owed: u64) -> Option<Spend> {
        let adds_up = self.layout.strategy() == Strategy::Gcra && !self.is_of_stamps();
        adds_up.then(|| Spend::unbounded(self.ticks(now_ns), owed))
    }

    /// The state of a bucket that has `state` at the time `now_ns`, with a debt on top.
    ///
    /// What windows have counted adds up, until the one that ends later does; a debt lasts up to
    /// two ticks longer. Of moving windows, and of their stamps, the later one holds.
    #[must_use]
    pub fn owing(&self, now_ns: u64, state: u64, owed: u64) -> u64 {
        let now = self.ticks(now_ns);
        match self.layout.strategy() {
            Strategy::Gcra => {
                let tat = if self.is_of_stamps() {
                    now.saturating_add(owed).max(state)
                } else {
                    state.max(now).saturating_add(owed)
                };
                tat.min(LOCKED - 1)
            }
            Strategy::FixedWindow | Strategy::SlidingWindowCounter => {
                let window = self.window();
                let (there, added) = (window.see(state, now), window.see(owed, 0));
                if added.left == 0 {
                    return state;
                }
                // Its end is not to be earlier than it was.
                let begun = u64::from(self.layout.ns(now) < now_ns);
                let both = Seen {
                    left: there.left.max(added.left + begun),
                    count: there.count.saturating_add(added.count),
                    previous: there.previous.saturating_add(added.previous),
                };
                window.state(&both, now)
            }
            Strategy::MovingWindow => {
                let (there, added) = (Cursor::of_state(state, now_ns), Cursor::of_state(owed, 0));
                let added = Cursor {
                    last: now_ns.saturating_add(added.last),
                    ..added
                };
                if added.last > there.last.max(now_ns) {
                    added.state()
                } else {
                    state
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
