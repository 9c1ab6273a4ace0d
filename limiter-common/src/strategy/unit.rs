//! The units that the states of buckets count in.

use super::{Layout, Window, rule::State as _};
#[cfg(not(target_arch = "bpf"))]
use super::{
    Parameters, Spend,
    gcra::MAX_BURST_OFFSET,
    rule::{Debt as _, Ledger as _},
};
#[cfg(not(target_arch = "bpf"))]
use crate::limit::Cost;
use crate::ratio::Ratio;

/// What a state counts in. The burst is not part of it: a debt is the same with any burst.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(C)]
pub struct Unit {
    /// For GCRA the emission interval, for windows the period, in ticks; for moving windows, which
    /// need neither, 1. 0: no unit.
    pub interval: u64,
    /// Converts a time in nanoseconds to ticks of GCRA.
    pub ticks_per_ns: Ratio,
    /// Converts a duration in ticks of GCRA to nanoseconds.
    pub ns_per_tick: Ratio,
    /// What a token is: the number of a [`Cost`](crate::limit::Cost).
    pub cost: u32,
    /// The meaning of a state's bits.
    pub layout: Layout,
}

impl Unit {
    /// Returns the parameters of a window as far as the unit has them: without the count.
    #[inline(always)]
    pub(super) const fn window(&self) -> Window {
        Window {
            count: 0,
            period: self.interval,
            layout: self.layout,
            reserved: 0,
        }
    }

    /// Converts the time `now_ns` to this unit's ticks.
    #[must_use]
    #[inline(always)]
    pub const fn ticks(&self, now_ns: u64) -> u64 {
        self.layout.ticks(self.ticks_per_ns.scale(now_ns))
    }

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

    /// Makes a unit of times in nanoseconds, with `interval` of them per token.
    pub(super) const fn in_ns(interval: u64, layout: Layout, cost: Cost) -> Self {
        Self {
            interval,
            ticks_per_ns: Ratio::ONE,
            ns_per_tick: Ratio::ONE,
            cost: cost as u32,
            layout,
        }
    }

    /// Returns the unit of a moving window's stamps, which are TATs in nanoseconds.
    ///
    /// Its interval differs from those of limits, except one of a token in over a century: the
    /// buckets of that limit owe at most a token, which is moved like a stamp.
    #[must_use]
    pub const fn of_stamps(cost: Cost) -> Self {
        Self::in_ns(MAX_BURST_OFFSET, Layout::GCRA, cost)
    }

    /// Returns whether the states are a moving window's stamps, which are not buckets to people.
    #[must_use]
    pub fn is_of_stamps(&self) -> bool {
        self.interval == MAX_BURST_OFFSET && !self.is_odd()
    }

    /// Returns whether the states are other than TATs in nanoseconds.
    #[must_use]
    pub fn is_odd(&self) -> bool {
        self.ticks_per_ns != Ratio::ONE || self.layout != Layout::GCRA
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
