//! Spends from a budget, and the level of its buckets.

use crate::strategy::{
    LargerThanBudget, Parameters, Spend, Strategy, gcra::GenericCellRate, rule::Rule,
};
#[cfg(not(target_arch = "bpf"))]
use crate::strategy::{Level, NEVER, Report, Terms, moving_window::Log, rule::Ledger};

impl Parameters {
    /// Prepares to spend `cost` tokens at the time `now_ns`.
    ///
    /// # Errors
    ///
    /// [`LargerThanBudget`]: it never passes. A fixed window reports no error, but refuses and counts such a cost
    /// itself.
    #[inline(always)]
    pub fn spend(&self, now_ns: u64, cost: u64) -> Result<Spend, LargerThanBudget> {
        dispatch!(self.strategy(), Rule => Rule::spend(self, now_ns, cost))
    }

    /// [`Self::spend`] for a limit by GCRA.
    ///
    /// # Errors
    ///
    /// [`LargerThanBudget`]: it never passes.
    #[inline(always)]
    pub fn spend_gcra(&self, now_ns: u64, cost: u64) -> Result<Spend, LargerThanBudget> {
        GenericCellRate::spend(self, now_ns, cost)
    }

    /// Prepares to spend more tokens than a full bucket holds; `None`: only GCRA's buckets can owe tokens.
    #[must_use]
    #[inline(always)]
    pub fn spend_owing(&self, now_ns: u64, cost: u64) -> Option<Spend> {
        if self.strategy() != Strategy::Gcra {
            return None;
        }
        let spend = self.gcra.spend_owing(self.gcra.ticks(now_ns), cost);
        Some(Spend::of_gcra(spend))
    }
}

#[cfg(not(target_arch = "bpf"))]
impl Parameters {
    /// Makes the parameters of a limit of `count` tokens every `period_ns` nanoseconds, with
    /// `burst` at once if the strategy [has a burst](Strategy::has_burst); in the unit of number 0.
    ///
    /// `None`: one of them is 0 or more than the strategy can count; see
    /// [`crate::strategy::gcra::Gcra::new`], [`Strategy::largest_count`] and
    /// [`Strategy::longest_period`].
    #[must_use]
    pub fn new(strategy: Strategy, burst: u64, count: u64, period_ns: u64) -> Option<Self> {
        let terms = Terms {
            burst,
            count,
            period_ns,
        };
        dispatch!(strategy, Rule => Rule::parameters(&terms))
    }

    /// The tokens of a full bucket.
    #[must_use]
    pub fn when_full(&self) -> u64 {
        self.level(0, None, &Log::EMPTY).remaining
    }

    /// Reads the log of a bucket; it is empty if the strategy has no log. `stamp` returns each stamp by its number, and
    /// 0 for a missing one.
    ///
    /// # Errors
    ///
    /// The errors of `stamp`.
    pub fn log<E>(&self, stamp: impl FnMut(u64) -> Result<u64, E>) -> Result<Log, E> {
        if self.strategy().has_log() {
            Log::read(stamp)
        } else {
            Ok(Log::EMPTY)
        }
    }

    /// Reports on a bucket after a decision on `cost` tokens at the time `now_ns`; `state` is the stored state, and
    /// `log` is [its log](Self::log).
    ///
    /// A window's bucket is full when all packets that it counted have expired.
    #[must_use]
    pub fn report(&self, now_ns: u64, state: Option<u64>, log: &Log, cost: u64) -> Report {
        let state = state.unwrap_or(0);
        dispatch!(self.strategy(), Rule => Rule::report(self, now_ns, state, log, cost))
    }

    /// The level of the bucket at the time `now_ns`; for the arguments see [`Self::report`].
    #[must_use]
    pub fn level(&self, now_ns: u64, state: Option<u64>, log: &Log) -> Level {
        let Report {
            remaining,
            retry_in_ns,
            reset_in_ns,
        } = self.report(now_ns, state, log, 1);
        Level {
            remaining,
            // Every budget has at least one token.
            retry_in_ns: retry_in_ns.unwrap_or(NEVER),
            reset_in_ns,
        }
    }

    /// The wait, in nanoseconds, until a packet of one token leaves `reserve` ticks in a bucket of GCRA in this state,
    /// at the time `now_ns`; 0: it passes now.
    #[must_use]
    pub fn wait_leaving(&self, now_ns: u64, state: Option<u64>, reserve: u64) -> u64 {
        match self.spend_gcra(now_ns, 1) {
            Ok(spend) => {
                let decision = spend.leaving(reserve).apply(state.unwrap_or(0));
                self.gcra.ns_rounded_up(decision.wait)
            }
            Err(LargerThanBudget) => NEVER,
        }
    }

    /// The spend that gives `cost` tokens back at the time `now_ns`, by [`Spend::refunded`]: for operators, not for
    /// packets.
    #[must_use]
    pub fn refund(&self, now_ns: u64, cost: u64) -> Spend {
        dispatch!(self.strategy(), Rule => Rule::refund(self, now_ns, cost))
    }
}

#[cfg(test)]
mod tests;
