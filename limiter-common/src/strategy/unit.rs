//! Units: what the states of buckets count in.

#[cfg(not(target_arch = "bpf"))]
use super::{
    Budget, Spend,
    gcra::MAX_BURST_OFFSET,
    rule::{Debt as _, Ledger as _},
};
use super::{Layout, Window, rule::State as _};
#[cfg(not(target_arch = "bpf"))]
use crate::limit::Cost;
use crate::ratio::Ratio;

/// What a state counts in. The burst is no part of it: what is owed is the same for any.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(C)]
pub struct Unit {
    /// Of GCRA the emission interval, of windows the period, in ticks; of moving windows, which
    /// need none, 1. 0: no unit.
    pub interval: u64,
    /// Converts a time in nanoseconds to ticks of GCRA.
    pub ticks_per_ns: Ratio,
    /// Converts a duration in ticks of GCRA to nanoseconds.
    pub ns_per_tick: Ratio,
    /// What a token is: a [`Cost`](crate::limit::Cost) as its number.
    pub cost: u32,
    /// What the bits of a state mean.
    pub layout: Layout,
}

impl Unit {
    /// What the states of windows count in, as far as they do: no count.
    #[inline(always)]
    pub(super) const fn window(&self) -> Window {
        Window {
            count: 0,
            period: self.interval,
            layout: self.layout,
            reserved: 0,
        }
    }

    /// The time `now_ns` in this unit's ticks.
    #[must_use]
    #[inline(always)]
    pub const fn ticks(&self, now_ns: u64) -> u64 {
        self.layout.ticks(self.ticks_per_ns.scale(now_ns))
    }

    /// The state, in this unit, of a bucket that has `state` in the unit `from`, at the time
    /// `now_ns`.
    ///
    /// The bucket owes as many tokens as before. It owes none where a token is something else, or
    /// the strategy is another.
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

    /// How much longer, in nanoseconds, until the bucket of that state is full; 0 exactly when it
    /// is.
    #[must_use]
    #[inline(always)]
    pub fn debt_ns(&self, now_ns: u64, state: u64) -> u64 {
        ask_state!(self.layout.strategy(), State => State::until_full(self, now_ns, state))
    }

    /// How much its owner would gain if the bucket of that state were forgotten: of several that
    /// are in the way, the one with the least weight goes. In nanoseconds, 0 exactly when it is
    /// full.
    #[must_use]
    #[inline(always)]
    pub fn weight(&self, now_ns: u64, state: u64) -> u64 {
        ask_state!(self.layout.strategy(), State => State::weight(self, now_ns, state))
    }
}

#[cfg(not(target_arch = "bpf"))]
impl Unit {
    /// The unit of a limit's buckets.
    #[must_use]
    pub fn new(budget: &Budget, cost: Cost) -> Self {
        ask!(budget.strategy(), Rule => Rule::unit(budget, cost))
    }

    /// A unit of times in nanoseconds, of which a token is `interval`.
    pub(super) const fn in_ns(interval: u64, layout: Layout, cost: Cost) -> Self {
        Self {
            interval,
            ticks_per_ns: Ratio::ONE,
            ns_per_tick: Ratio::ONE,
            cost: cost as u32,
            layout,
        }
    }

    /// The unit of the stamps of a moving window: of TATs in nanoseconds.
    ///
    /// Its interval tells it from those of limits, but for one of a token in over a century: what
    /// that one's buckets owe is a token at most, which is moved as a stamp is.
    #[must_use]
    pub const fn of_stamps(cost: Cost) -> Self {
        Self::in_ns(MAX_BURST_OFFSET, Layout::GCRA, cost)
    }

    /// Whether its states are the stamps of a moving window, which are no buckets that people know.
    #[must_use]
    pub fn is_of_stamps(&self) -> bool {
        self.interval == MAX_BURST_OFFSET && !self.is_odd()
    }

    /// Whether its states are other than TATs in nanoseconds.
    #[must_use]
    pub fn is_odd(&self) -> bool {
        self.ticks_per_ns != Ratio::ONE || self.layout != Layout::GCRA
    }

    /// What a bucket of that state owes at the time `now_ns`; 0: nothing, it is full.
    ///
    /// A debt is a state as it is at the time 0, so that it can be kept, and put back where the
    /// clock is another.
    #[must_use]
    pub fn owed(&self, now_ns: u64, state: u64) -> u64 {
        ask_state!(self.layout.strategy(), State => State::owed(self, now_ns, state))
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
        // If a bucket was full in between, all that it owes was spent since.
        let before = self.left_of(earlier, passed_ns).unwrap_or(0);
        let spent = ask_state!(self.layout.strategy(), State => State::since(self, owed, before));
        Some(spent).filter(|spent| *spent > 0)
    }

    /// What adds a debt to whatever a bucket owes at the time `now_ns`, as [`Self::owing`] does;
    /// `None`: that takes the state.
    #[must_use]
    pub fn adding(&self, now_ns: u64, owed: u64) -> Option<Spend> {
        ask_state!(self.layout.strategy(), State => State::adding(self, now_ns, owed))
    }

    /// The state of a bucket that has `state` at the time `now_ns`, with a debt on top: one that
    /// adds up, or the later of two that do not.
    #[must_use]
    pub fn owing(&self, now_ns: u64, state: u64, owed: u64) -> u64 {
        ask_state!(self.layout.strategy(), State => State::owing(self, now_ns, state, owed))
    }
}

#[cfg(test)]
mod tests;
