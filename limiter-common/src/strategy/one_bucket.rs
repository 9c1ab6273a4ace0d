//! A window's bucket as in a table, for tests.

use super::{Decision, Parameters, Strategy, Window, moving_window::Log};

/// The parameters of a window; `None`: it cannot be counted.
pub(super) fn window(strategy: Strategy, count: u64, period_ns: u64) -> Option<Window> {
    let parameters = Parameters::new(strategy, 0, count, period_ns);
    parameters.map(|parameters| parameters.window)
}

pub(super) struct OneBucket {
    pub(super) parameters: Parameters,
    pub(super) state: u64,
}

impl OneBucket {
    pub(super) fn new(strategy: Strategy, count: u64, period_ns: u64) -> Self {
        let parameters = Parameters::new(strategy, 0, count, period_ns);
        Self {
            parameters: parameters.expect("a window that can be counted"),
            state: 0,
        }
    }

    /// The length of its tick in nanoseconds.
    pub(super) fn tick_ns(&self) -> u64 {
        self.parameters.window.layout.ns(1)
    }

    /// Decides on `cost` tokens without changing the bucket.
    pub(super) fn decide(&self, now_ns: u64, cost: u64) -> Decision {
        let spend = self.parameters.spend(now_ns, cost);
        spend.expect("it fits").apply(self.state)
    }

    pub(super) fn passes(&mut self, now_ns: u64, cost: u64) -> bool {
        let decision = self.decide(now_ns, cost);
        self.state = decision.state;
        decision.passes()
    }

    pub(super) fn refund(&mut self, now_ns: u64, cost: u64) {
        let spend = self.parameters.spend(now_ns, cost);
        self.state = spend.expect("it fits").undo(self.state);
    }

    pub(super) fn remaining(&self, now_ns: u64) -> u64 {
        let level = self.parameters.level(now_ns, Some(self.state), &Log::EMPTY);
        level.remaining
    }
}
