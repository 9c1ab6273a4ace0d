//! Tokens are given back, under every strategy.

use anyhow::Result;
use limiter_common::strategy::Strategy;
use limiter_datapath::kernel::possible_cpus;
use limiter_policy::policy::CompiledPolicy;

use super::{Kernel, SECOND, STORES, limit};
use crate::engine::{START, apart};

const CAPACITY: u32 = 65_536;

impl Kernel {
    fn give_back(&self, source: u32, cost: Option<u64>, offset_ns: u64) -> Result<()> {
        let (units, now) = (&self.tables.units, START + offset_ns);
        let buckets = self.buckets();
        Ok(buckets.give_back(&self.key(source), self.parameters()?, cost, units, now)?)
    }

    fn reset_all(&self, offset_ns: u64) -> Result<u64> {
        let (units, now) = (&self.tables.units, START + offset_ns);
        Ok(self.buckets().reset_all(Some(self.limit()), units, now)?)
    }
}

/// Every strategy in both stores.
fn each(mut check: impl FnMut(&mut Kernel, Strategy, &str) -> Result<()>) -> Result<()> {
    let limits = Strategy::ALL.map(|strategy| limit(strategy, 10, 1_000));
    for store in STORES {
        let mut kernel = Kernel::new(limits.clone(), store, CAPACITY)?;
        for (limit_index, strategy) in (0..).zip(Strategy::ALL) {
            let case = format!("{strategy:?} {store:?}");
            check(kernel.trying(limit_index), strategy, &case)?;
        }
    }
    Ok(())
}

/// Checks that exactly `left` packets pass from now on.
fn assert_left(kernel: &mut Kernel, left: u64, now: u64, case: &str) -> Result<()> {
    assert_eq!(kernel.remaining(1, now)?, left, "{case}");
    for number in 0..left {
        assert!(kernel.passes(1, now)?, "{case}: {number}");
    }
    assert!(!kernel.passes(1, now)?, "{case}: no more");
    Ok(())
}

#[test]
fn so_many_packets_pass_again_as_are_given_back() -> Result<()> {
    each(|kernel, _, case| {
        // There is nothing to give back.
        kernel.give_back(1, Some(1), 0)?;
        assert_eq!(kernel.trial.maps().bucket(&kernel.key(1))?, None, "{case}");
        // Two more than can pass.
        for second in 0..12 {
            kernel.passes(1, second * SECOND)?;
        }
        let now = 20 * SECOND;
        for tokens in [3, 1, 7] {
            assert_left(kernel, 0, now, case)?;
            kernel.give_back(1, Some(tokens), now)?;
            assert_left(kernel, tokens, now, case)?;
        }
        // Never more than was spent.
        kernel.give_back(1, Some(u64::MAX), now)?;
        assert_left(kernel, 10, now, case)?;
        kernel.give_back(1, None, now)?;
        assert_eq!(kernel.level(1, now)?.reset_in_ns, 0, "{case}");
        assert_left(kernel, 10, now, case)
    })
}

/// The last packets are given back: the older ones of the log still count, and end first.
#[test]
fn the_last_packets_of_a_log_are_given_back() -> Result<()> {
    each(|kernel, strategy, case| {
        if strategy != Strategy::MovingWindow {
            return Ok(());
        }
        for second in 0..10 {
            assert!(kernel.passes(1, second * SECOND)?, "{case}");
        }
        let now = 20 * SECOND;
        kernel.give_back(1, Some(4), now)?;
        let level = kernel.level(1, now)?;
        // The end of the sixth packet, which came after 5 s.
        assert_eq!(level.reset_in_ns, 985 * SECOND, "{case}");
        assert_left(kernel, 4, now, case)?;
        assert_eq!(kernel.level(1, now)?.retry_in_ns, 980 * SECOND, "{case}");
        Ok(())
    })
}

/// Even after many restarts of the log, no old stamp is taken for a current one.
#[test]
fn a_log_that_was_cleared_begins_anew() -> Result<()> {
    let counts = [1, 2, 100, 128];
    let limits = counts.map(|count| limit(Strategy::MovingWindow, count, 1_000));
    for store in STORES {
        let mut kernel = Kernel::new(limits.clone(), store, CAPACITY)?;
        for (limit_index, count) in (0..).zip(counts) {
            let kernel = kernel.trying(limit_index);
            for round in 0..3 {
                let case = format!("{count} {store:?} {round}");
                let now = round * SECOND;
                assert_left(kernel, count, now, &case)?;
                kernel.give_back(1, Some(count.div_ceil(2)), now)?;
                assert_left(kernel, count.div_ceil(2), now, &case)?;
                if round == 1 {
                    assert_eq!(kernel.reset_all(now)?, 1, "{case}");
                } else {
                    kernel.give_back(1, None, now)?;
                }
            }
        }
    }
    Ok(())
}

#[test]
fn all_are_filled_and_counted() -> Result<()> {
    each(|kernel, _, case| {
        for source in 1..=5 {
            kernel.spend(source, 4, 0)?;
        }
        assert_eq!(kernel.reset_all(SECOND)?, 5, "{case}");
        assert_eq!(kernel.reset_all(SECOND)?, 0, "{case}");
        for source in 1..=5 {
            assert_eq!(kernel.remaining(source, SECOND)?, 10, "{case}");
        }
        // Old stamps do not count either.
        assert_left(kernel, 10, 2 * SECOND, case)
    })
}

/// The bucket has seen no packet since its limit's rate changed.
#[test]
fn tokens_are_given_back_in_whatever_unit() -> Result<()> {
    let limits = |count, seconds| Strategy::ALL.map(|strategy| limit(strategy, count, seconds));
    for store in STORES {
        let mut kernel = Kernel::new(limits(10, 1_000), store, CAPACITY)?;
        for limit_index in 0..4 {
            kernel.trying(limit_index).spend(1, 10, 0)?;
        }
        let policy = apart(limits(12, 1_500));
        kernel.tables = CompiledPolicy::with_units(&policy, &kernel.tables.units, possible_cpus())?;
        kernel.trial.replace(&kernel.tables)?;
        for (limit_index, strategy) in (0..).zip(Strategy::ALL) {
            let case = format!("{strategy:?} {store:?}");
            let kernel = kernel.trying(limit_index);
            assert_eq!(kernel.remaining(1, SECOND)?, 2, "{case}");
            kernel.give_back(1, Some(3), SECOND)?;
            assert_left(kernel, 5, SECOND, &case)?;
        }
    }
    Ok(())
}
