//! What states are worth, in their units.

use crate::strategy::{Unit, rule::State as _};
#[cfg(not(target_arch = "bpf"))]
use crate::{
    limit::Cost,
    strategy::{
        Parameters, Spend,
        rule::{Debt as _, Ledger as _},
    },
};

impl Unit {
    /// Converts the `state` of a bucket in the unit `from` to this unit, at the time `now_ns`.
    ///
    /// The bucket owes as many tokens as before. It owes none if the tokens are of another kind or
    /// the strategies differ.
    #[must_use]
    #[inline(always)]
    pub fn exchange(&self, from: &Self, now_ns: u64, state: u64) -> u64 {
        let is_alike = self.cost == from.cost && self.layout.is_of_strategy_of(from.layout);
        ask_state!(self.layout.strategy(), State => if is_alike {
            State::exchange(from, self, now_ns, state)
        } else {
            State::full(self, now_ns)
        })
    }

    /// Returns how many nanoseconds it takes until the bucket of that state is full; 0 exactly if
    /// it is full.
    #[must_use]
    #[inline(always)]
    pub fn debt_ns(&self, now_ns: u64, state: u64) -> u64 {
        ask_state!(self.layout.strategy(), State => State::until_full(self, now_ns, state))
    }

    /// Returns how much the owner of the bucket of that state would gain if it were forgotten, in
    /// nanoseconds; 0 exactly if it is full. Eviction takes the bucket with the least weight.
    #[must_use]
    #[inline(always)]
    pub fn weight(&self, now_ns: u64, state: u64) -> u64 {
        ask_state!(self.layout.strategy(), State => State::weight(self, now_ns, state))
    }
}

#[cfg(not(target_arch = "bpf"))]
impl Unit {
    /// Returns the unit of a limit's buckets.
    #[must_use]
    pub fn new(parameters: &Parameters, cost: Cost) -> Self {
        ask!(parameters.strategy(), Rule => Rule::unit(parameters, cost))
    }

    /// Returns what a bucket in that state owes at the time `now_ns`; 0: nothing, it is full.
    ///
    /// A debt is a state at the time 0, so that it can be saved and restored under another clock.
    #[must_use]
    pub fn owed(&self, now_ns: u64, state: u64) -> u64 {
        ask_state!(self.layout.strategy(), State => State::owed(self, now_ns, state))
    }

    /// Returns what is left of a debt after `passed_ns`; `None`: nothing.
    #[must_use]
    pub fn left_of(&self, owed: u64, passed_ns: u64) -> Option<u64> {
        // Compares nanoseconds first: the ticks of a longer time may not fit.
        if self.debt_ns(0, owed) <= passed_ns {
            return None;
        }
        Some(self.owed(passed_ns, owed)).filter(|left| *left > 0)
    }

    /// Returns the part of a debt that was spent since the bucket had the debt `earlier`,
    /// `passed_ns` before; `None`: nothing. [`Self::owing`] adds it to what is left of the earlier
    /// one.
    #[must_use]
    pub fn since(&self, owed: u64, earlier: u64, passed_ns: u64) -> Option<u64> {
        // If the bucket was full in between, its whole debt was spent since.
        let before = self.left_of(earlier, passed_ns).unwrap_or(0);
        let spent = ask_state!(self.layout.strategy(), State => State::since(self, owed, before));
        Some(spent).filter(|spent| *spent > 0)
    }

    /// Returns a spend that adds a debt to any bucket at the time `now_ns`, as [`Self::owing`]
    /// does; `None`: that needs the state.
    #[must_use]
    pub fn adding(&self, now_ns: u64, owed: u64) -> Option<Spend> {
        ask_state!(self.layout.strategy(), State => State::adding(self, now_ns, owed))
    }

    /// Returns the state of a bucket that has `state` at the time `now_ns`, with a debt added:
    /// their sum, or the later one if they do not add up.
    #[must_use]
    pub fn owing(&self, now_ns: u64, state: u64, owed: u64) -> u64 {
        ask_state!(self.layout.strategy(), State => State::owing(self, now_ns, state, owed))
    }
}

#[cfg(test)]
mod tests;
