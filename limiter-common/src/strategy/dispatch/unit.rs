//! The worth of states, in their units.

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
        dispatch_state!(self.layout.strategy(), State => if is_alike {
            State::exchange(from, self, now_ns, state)
        } else {
            State::full(self, now_ns)
        })
    }

    /// The time, in nanoseconds, until the bucket in this state is full; 0 exactly if it is full.
    #[must_use]
    #[inline(always)]
    pub fn debt_ns(&self, now_ns: u64, state: u64) -> u64 {
        dispatch_state!(self.layout.strategy(), State => State::until_full(self, now_ns, state))
    }

    /// The key's gain from evicting the bucket in this state, in nanoseconds; 0 exactly if it is
    /// full. Eviction takes the bucket with the least weight.
    #[must_use]
    #[inline(always)]
    pub fn weight(&self, now_ns: u64, state: u64) -> u64 {
        dispatch_state!(self.layout.strategy(), State => State::weight(self, now_ns, state))
    }
}

#[cfg(not(target_arch = "bpf"))]
impl Unit {
    /// The unit of a limit's buckets.
    #[must_use]
    pub fn new(parameters: &Parameters, cost: Cost) -> Self {
        dispatch!(parameters.strategy(), Rule => Rule::unit(parameters, cost))
    }

    /// The debt of a bucket in this state at the time `now_ns`; 0: it is full.
    ///
    /// A debt is a state at the time 0, so it can be saved and restored under another clock.
    #[must_use]
    pub fn owed(&self, now_ns: u64, state: u64) -> u64 {
        dispatch_state!(self.layout.strategy(), State => State::owed(self, now_ns, state))
    }

    /// The rest of a debt after `passed_ns`; `None`: it is paid off.
    #[must_use]
    pub fn left_of(&self, owed: u64, passed_ns: u64) -> Option<u64> {
        // Compares nanoseconds first: the ticks of a longer time may not fit.
        if self.debt_ns(0, owed) <= passed_ns {
            return None;
        }
        Some(self.owed(passed_ns, owed)).filter(|left| *left > 0)
    }

    /// The part of a debt that is new since the bucket had the debt `earlier`, `passed_ns` before;
    /// `None`: no part. [`Self::owing`] adds it to the rest of the earlier debt.
    #[must_use]
    pub fn since(&self, owed: u64, earlier: u64, passed_ns: u64) -> Option<u64> {
        // If the bucket was full in between, its whole debt is new.
        let before = self.left_of(earlier, passed_ns).unwrap_or(0);
        let spent =
            dispatch_state!(self.layout.strategy(), State => State::since(self, owed, before));
        Some(spent).filter(|spent| *spent > 0)
    }

    /// A spend that adds a debt to any bucket at the time `now_ns`, as [`Self::owing`] does;
    /// `None`: the addition needs the state.
    #[must_use]
    pub fn adding(&self, now_ns: u64, owed: u64) -> Option<Spend> {
        dispatch_state!(self.layout.strategy(), State => State::adding(self, now_ns, owed))
    }

    /// Adds a debt to a bucket that has `state` at the time `now_ns`; returns its new state: the
    /// sum of both debts, or the later one if they do not add up.
    #[must_use]
    pub fn owing(&self, now_ns: u64, state: u64, owed: u64) -> u64 {
        dispatch_state!(self.layout.strategy(), State => State::owing(self, now_ns, state, owed))
    }
}

#[cfg(test)]
mod tests;
