//! What an owner may spend under a limit, and what is left of it.

#[cfg(not(target_arch = "bpf"))]
use super::{Level, NEVER, Report, Terms, moving_window::Log, rule::Ledger};
use super::{
    Spend, Strategy,
    gcra::{Gcra, GenericCellRate},
    rule::Rule,
    window::Window,
};

/// A limit's parameters as the datapath computes with them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(C)]
pub struct Budget {
    /// Those of GCRA; of the other strategies [`Gcra::NONE`].
    pub gcra: Gcra,
    /// Those of windows; of GCRA [`Window::NONE`].
    pub window: Window,
    /// The number of the unit that the buckets' states count in.
    pub unit: u32,
    /// Of a moving window the number of the unit that its stamps count in.
    pub stamp_unit: u32,
}

/// More tokens than there ever are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LargerThanBudget;

impl Budget {
    /// Of no limit.
    pub const NONE: Self = Self::of_gcra(Gcra::NONE);

    /// A budget by GCRA, in the unit of number 0.
    #[must_use]
    pub const fn of_gcra(gcra: Gcra) -> Self {
        Self {
            gcra,
            window: Window::NONE,
            unit: 0,
            stamp_unit: 0,
        }
    }

    /// By which rule it is decided on.
    #[must_use]
    #[inline(always)]
    pub const fn strategy(&self) -> Strategy {
        self.window.layout.strategy()
    }

    /// Prepares to spend `cost` tokens at the time `now_ns`.
    ///
    /// # Errors
    ///
    /// [`LargerThanBudget`]: no waiting will make it pass. A fixed window refuses it itself, and
    /// counts it.
    #[inline(always)]
    pub fn spend(&self, now_ns: u64, cost: u64) -> Result<Spend, LargerThanBudget> {
        ask!(self.strategy(), Rule => Rule::spend(self, now_ns, cost))
    }

    /// The same of a budget by GCRA.
    ///
    /// # Errors
    ///
    /// As there.
    #[inline(always)]
    pub fn spend_gcra(&self, now_ns: u64, cost: u64) -> Result<Spend, LargerThanBudget> {
        GenericCellRate::spend(self, now_ns, cost)
    }
}

#[cfg(not(target_arch = "bpf"))]
impl Budget {
    /// The budget of a limit of `count` tokens every `period_ns` nanoseconds, with `burst` at once
    /// if the strategy [has a burst](Strategy::has_burst); in the unit of number 0.
    ///
    /// `None`: one of them is 0 or more than the strategy can count, see [`Gcra::new`],
    /// [`Strategy::largest_count`] and [`Strategy::longest_period`].
    #[must_use]
    pub fn new(strategy: Strategy, burst: u64, count: u64, period_ns: u64) -> Option<Self> {
        let terms = Terms {
            burst,
            count,
            period_ns,
        };
        ask!(strategy, Rule => Rule::budget(&terms))
    }

    /// A budget by windows, in the unit of number 0.
    pub(super) const fn of_window(window: Window) -> Self {
        Self {
            window,
            ..Self::NONE
        }
    }

    /// The tokens of a full bucket.
    #[must_use]
    pub fn when_full(&self) -> u64 {
        self.level(0, None, &Log::EMPTY).remaining
    }

    /// The log of a bucket, which is empty if the strategy has none; `stamp` tells each stamp by
    /// its number, 0: there is none.
    ///
    /// # Errors
    ///
    /// Those of `stamp`.
    pub fn log<E>(&self, stamp: impl FnMut(u64) -> Result<u64, E>) -> Result<Log, E> {
        if self.strategy().has_log() {
            Log::read(stamp)
        } else {
            Ok(Log::EMPTY)
        }
    }

    /// Reports on a bucket since a decision on `cost` tokens at the time `now_ns`; `state`: what
    /// is stored of it, `log`: [its log](Self::log).
    ///
    /// A window's bucket is full when nothing that was counted counts any more.
    #[must_use]
    pub fn report(&self, now_ns: u64, state: Option<u64>, log: &Log, cost: u64) -> Report {
        let state = state.unwrap_or(0);
        ask!(self.strategy(), Rule => Rule::report(self, now_ns, state, log, cost))
    }

    /// What the bucket holds at the time `now_ns`; otherwise as [`Self::report`].
    #[must_use]
    pub fn level(&self, now_ns: u64, state: Option<u64>, log: &Log) -> Level {
        let Report {
            remaining,
            retry_in_ns,
            reset_in_ns,
        } = self.report(now_ns, state, log, 1);
        Level {
            remaining,
            // Every budget has a token.
            retry_in_ns: retry_in_ns.unwrap_or(NEVER),
            reset_in_ns,
        }
    }

    /// What gives `cost` tokens back at the time `now_ns`, by [`Spend::refunded`]: for people, and
    /// not for packets.
    #[must_use]
    pub fn refund(&self, now_ns: u64, cost: u64) -> Spend {
        ask!(self.strategy(), Rule => Rule::refund(self, now_ns, cost))
    }
}

#[cfg(test)]
mod tests;
