//! Decisions on a bucket's state, which a store may have to repeat.

use crate::strategy::{
    Decision, Spend,
    rule::{Rule as _, State as _},
};

impl Spend {
    /// Decides on a bucket in that state, by the state alone: a moving window needs its log too,
    /// and refuses here.
    #[must_use]
    #[inline(always)]
    pub fn apply(&self, state: u64) -> Decision {
        ask!(self.strategy(), Rule => Rule::decide(self, state))
    }

    /// Returns the state of a bucket that gets back what a packet was charged. A bucket that has
    /// refilled in between is not overfilled; [`crate::strategy::moving_window`] says how a log is
    /// refunded.
    #[must_use]
    #[inline(always)]
    pub fn undo(&self, state: u64) -> u64 {
        ask!(self.strategy(), Rule => Rule::undo(self, state))
    }

    /// Returns the state of a bucket that gets this back, at most what it owes: for operators, not
    /// for packets. [`crate::strategy::moving_window::Cursor::without_last`] does so for moving
    /// windows.
    #[must_use]
    #[inline(always)]
    pub fn refunded(&self, state: u64) -> u64 {
        ask_state!(self.strategy(), State => State::refunded(self, state))
    }
}
