//! What a budget lets a packet spend, and how much is left of it.

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
    /// [`LargerThanBudget`]: it never passes. A fixed window refuses such a cost itself, and counts
    /// it.
    #[inline(always)]
    pub fn spend(&self, now_ns: u64, cost: u64) -> Result<Spend, LargerThanBudget> {
        ask!(self.strategy(), Rule => Rule::spend(self, now_ns, cost))
    }

    /// Does the same for a limit by GCRA.
    ///
    /// # Errors
    ///
    /// [`LargerThanBudget`]: it never passes.
    #[inline(always)]
    pub fn spend_gcra(&self, now_ns: u64, cost: u64) -> Result<Spend, LargerThanBudget> {
        GenericCellRate::spend(self, now_ns, cost)
    }

    /// Prepares to spend more tokens than a full bucket holds, which a bucket of GCRA can owe; `None`: others
    /// cannot.
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
        ask!(strategy, Rule => Rule::parameters(&terms))
    }

    /// Returns the tokens of a full bucket.
    #[must_use]
    pub fn when_full(&self) -> u64 {
        self.level(0, None, &Log::EMPTY).remaining
    }

    /// Reads the log of a bucket, which is empty if the strategy has none; `stamp` returns each
    /// stamp by its number, 0: there is none.
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

    /// Reports on a bucket after a decision on `cost` tokens at the time `now_ns`; `state` is the
    /// stored state, and `log` is [its log](Self::log).
    ///
    /// A window's bucket is full when none of the packets that it counted counts any more.
    #[must_use]
    pub fn report(&self, now_ns: u64, state: Option<u64>, log: &Log, cost: u64) -> Report {
        let state = state.unwrap_or(0);
        ask!(self.strategy(), Rule => Rule::report(self, now_ns, state, log, cost))
    }

    /// Returns what the bucket holds at the time `now_ns`; the arguments are those of
    /// [`Self::report`].
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

    /// Returns how long, in nanoseconds, a packet of one token must wait at the time `now_ns` until
    /// it leaves `reserve` ticks in a bucket of GCRA in that state; 0: it passes now.
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

    /// Returns what gives `cost` tokens back at the time `now_ns`, by [`Spend::refunded`]: for
    /// operators, not for packets.
    #[must_use]
    pub fn refund(&self, now_ns: u64, cost: u64) -> Spend {
        ask!(self.strategy(), Rule => Rule::refund(self, now_ns, cost))
    }
}

#[cfg(test)]
mod tests;
