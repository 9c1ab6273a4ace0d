//! A bucket of a window as a store has it, for tests.

use super::{Budget, Decision, Strategy, Window, moving_window::Log};

/// The parameters of a window; `None`: it cannot be counted.
pub(super) fn window(strategy: Strategy, count: u64, period_ns: u64) -> Option<Window> {
    let budget = Budget::new(strategy, 0, count, period_ns);
    budget.map(|budget| budget.window)
}

pub(super) struct OneBucket {
    pub(super) budget: Budget,
    pub(super) state: u64,
}

impl OneBucket {
    pub(super) fn new(strategy: Strategy, count: u64, period_ns: u64) -> Self {
        let budget = Budget::new(strategy, 0, count, period_ns);
        Self {
            budget: budget.expect("a window that can be counted"),
            state: 0,
        }
    }

    /// How long a tick of it is.
    pub(super) fn tick_ns(&self) -> u64 {
        self.budget.window.layout.ns(1)
    }

    /// The state that it has after the decision on so many tokens, and the wait.
    pub(super) fn decide(&self, now_ns: u64, cost: u64) -> Decision {
        let spend = self.budget.spend(now_ns, cost);
        spend.expect("it fits").apply(self.state)
    }

    /// Takes so many tokens, if it has them.
    pub(super) fn passes(&mut self, now_ns: u64, cost: u64) -> bool {
        let decision = self.decide(now_ns, cost);
        self.state = decision.state;
        decision.passes()
    }

    pub(super) fn refund(&mut self, now_ns: u64, cost: u64) {
        let spend = self.budget.spend(now_ns, cost);
        self.state = spend.expect("it fits").undo(self.state);
    }

    pub(super) fn remaining(&self, now_ns: u64) -> u64 {
        let level = self.budget.level(now_ns, Some(self.state), &Log::EMPTY);
        level.remaining
    }
}
