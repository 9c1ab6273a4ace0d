//! Decisions on a bucket's state, which a table may have to repeat.

use crate::strategy::{
    Decision, Spend,
    rule::{Rule as _, State as _},
};

impl Spend {
    /// Decides on a bucket by its state alone. A moving window refuses here, because it needs its
    /// log too.
    #[must_use]
    #[inline(always)]
    pub fn apply(&self, state: u64) -> Decision {
        dispatch!(self.strategy(), Rule => Rule::decide(self, state))
    }

    /// Takes back the charge of a packet; returns the bucket's new state. A bucket that has
    /// refilled in between is not overfilled; [`crate::strategy::moving_window`] describes refunds
    /// to a log.
    #[must_use]
    #[inline(always)]
    pub fn undo(&self, state: u64) -> u64 {
        dispatch!(self.strategy(), Rule => Rule::undo(self, state))
    }

    /// Refunds this amount, at most the debt, and returns the bucket's new state: for operators,
    /// not for packets. For moving windows,
    /// [`crate::strategy::moving_window::Cursor::without_last`] does this.
    #[must_use]
    #[inline(always)]
    pub fn refunded(&self, state: u64) -> u64 {
        dispatch_state!(self.strategy(), State => State::refunded(self, state))
    }
}
