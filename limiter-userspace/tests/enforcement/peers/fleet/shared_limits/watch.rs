//! The tokens that nodes admit together, compared with the budget at each measurement.

use std::{
    ops::RangeInclusive,
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::Value;
use testbed::Limiter;

use super::{Fleet, PATIENCE, status, wait_for_leases};

/// How long to measure the used part of the budget.
const MEASURED: Duration = Duration::from_secs(2);

/// Returns how long the store gives leases, by its own clock, in milliseconds: negative before.
const OPEN_MS: &str =
    "local state = cmsgpack.unpack(redis.call('HGET', 'limiter:{edge}:leases', 'state'))
                       return state.now - state.opens";

/// The interval between two measurements.
const POLL: Duration = Duration::from_millis(300);

/// The budget of a limit's only busy key. Its burst is two seconds' refill, so that the refill between two
/// measurements does not hide surplus tokens.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct Budget {
    pub(in super::super) limit: &'static str,
    /// The counter of admitted tokens, in the limit's status.
    pub(in super::super) passed: &'static str,
    /// In tokens a second.
    pub(in super::super) rate: u64,
}

impl Budget {
    /// After this time an unused bucket is full: any share of the burst refills in it.
    const FULL_MS: i64 = 2_000;

    const fn burst(&self) -> u64 {
        2 * self.rate
    }

    /// Returns the tokens that refill in a time.
    fn came_in(&self, time: Duration) -> Result<i64> {
        let us = i64::try_from(time.as_micros())?;
        Ok(us * i64::try_from(self.rate)? / 1_000_000)
    }

    fn admitted(&self, status: &Value) -> Result<u64> {
        let passed = status["limits"][self.limit][self.passed].as_u64();
        passed.context("no such limit")
    }
}

/// The tokens that all nodes admit. One bucket with the whole budget must have admitted them between any
/// two measurements, and so over any time.
pub(in super::super) struct Watch {
    begun: Instant,
    /// Each budget, with the lowest difference so far of admitted tokens and refill.
    budgets: Vec<(Budget, i64)>,
    /// Each budget's tokens admitted by nodes that have left.
    gone: Vec<i64>,
}

impl Watch {
    /// Begins when the store gives leases and all buckets are full: then unused tokens cannot hide surplus
    /// ones.
    pub(in super::super) fn begin(fleet: &Fleet, budgets: &[Budget]) -> Result<Self> {
        Self::begin_at(fleet, budgets, |command| fleet.store.command(command))
    }

    /// Begins with a store that runs commands by `ask`.
    pub(in super::super) fn begin_at(
        fleet: &Fleet,
        budgets: &[Budget],
        ask: impl Fn(&[&str]) -> Result<String>,
    ) -> Result<Self> {
        wait_for_leases(fleet)?;
        crate::wait(|| {
            let open_ms = ask(&["EVAL", OPEN_MS, "1", "limiter:{edge}:leases"])?;
            Ok(open_ms.trim().parse::<i64>()? >= Budget::FULL_MS)
        })?;
        let mut watch = Self {
            begun: Instant::now(),
            budgets: budgets.iter().map(|budget| (*budget, i64::MAX)).collect(),
            gone: vec![0; budgets.len()],
        };
        watch.poll(fleet)?;
        Ok(watch)
    }

    /// Adds the tokens admitted by a leaving node.
    pub(in super::super) fn leaves(&mut self, node: &Limiter) -> Result<()> {
        let status = node.status()?;
        for ((budget, _), gone) in self.budgets.iter().zip(&mut self.gone) {
            *gone += i64::try_from(budget.admitted(&status)?)?;
        }
        Ok(())
    }

    /// Begins with other budgets, which are full.
    pub(in super::super) fn begin_again(&mut self, fleet: &Fleet) -> Result<()> {
        for (_, behind) in &mut self.budgets {
            *behind = i64::MAX;
        }
        self.poll(fleet).map(drop)
    }

    /// Checks the admitted tokens since every earlier measurement against the limits; returns the total of
    /// each budget.
    pub(in super::super) fn poll(&mut self, fleet: &Fleet) -> Result<Vec<u64>> {
        let before = self.begun.elapsed();
        let nodes = fleet.nodes.iter().map(Limiter::status);
        let nodes = nodes.collect::<Result<Vec<_>>>()?;
        let after = self.begun.elapsed();
        let budgets = self.budgets.iter_mut().zip(&self.gone);
        let polls = budgets.map(|((budget, behind), gone)| {
            let admitted = nodes.iter().map(|status| budget.admitted(status));
            let admitted = admitted.sum::<Result<u64>>()?;
            let count = gone + i64::try_from(admitted)?;
            *behind = (*behind).min(count - budget.came_in(before)?);
            let taken = count - budget.came_in(after)? - *behind;
            // The time is rounded down.
            let most = i64::try_from(budget.burst())? + 1;
            let limit = budget.limit;
            println!("{after:?}: {limit} admitted {admitted}, {taken} of {most} above the rate");
            ensure!(
                taken <= most,
                "{limit}: {taken} more than the rate, of {most}"
            );
            Ok(admitted)
        });
        polls.collect()
    }

    /// Measures for a time; returns the used part of each budget, in percent of the rate.
    pub(in super::super) fn used_within(
        &mut self,
        fleet: &Fleet,
        time: Duration,
    ) -> Result<Vec<u64>> {
        let (before, begun) = (self.poll(fleet)?, Instant::now());
        loop {
            thread::sleep(POLL);
            let (after, passed) = (self.poll(fleet)?, begun.elapsed());
            if passed >= time {
                let budgets = self.budgets.iter().zip(before.into_iter().zip(after));
                let used = budgets.map(|((budget, _), (before, after))| {
                    let came = u64::try_from(budget.came_in(passed)?)?;
                    Ok((after - before) * 100 / came.max(1))
                });
                return used.collect();
            }
        }
    }

    /// Measures until such a part of each budget is used, in percent. That may take a while, since shares
    /// and packets may be late on a busy machine.
    pub(in super::super) fn wait_for_use(
        &mut self,
        fleet: &Fleet,
        right: RangeInclusive<u64>,
    ) -> Result<()> {
        let begun = Instant::now();
        loop {
            let used = self.used_within(fleet, MEASURED)?;
            println!(
                "{used:?} % were used, {:?} after the change",
                begun.elapsed()
            );
            if used.iter().all(|used| right.contains(used)) {
                return Ok(());
            }
            if begun.elapsed() > PATIENCE {
                for node in &fleet.nodes {
                    println!("{:#}\n{}", status(node)?, node.log()?);
                }
                bail!("{used:?} % were used, not {right:?}");
            }
        }
    }
}
