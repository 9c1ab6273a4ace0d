//! Debts captured from one program's maps and restored into those of another.

use anyhow::Result;
use limiter_common::strategy::{Level, Strategy};
use limiter_datapath::{kernel::Restored, state::Debts};
use limiter_policy::config::Store;

use super::{Kernel, SECOND, STORES, limit};
use crate::engine::START;

const CAPACITY: u32 = 65_536;

/// How many packets each source has sent; a hundred seconds admit ten, and some were refused.
const SPENT: [(u32, u64); 4] = [(1, 1), (2, 7), (3, 10), (4, 13)];

fn spent(strategy: Strategy, store: Store, capacity: u32) -> Result<Kernel> {
    let mut kernel = Kernel::new(limit(strategy, 10, 100), store, capacity)?;
    for (source, packets) in SPENT {
        for number in 0..packets {
            kernel.passes(source, number * SECOND / 10)?;
        }
    }
    Ok(kernel)
}

/// The time when all have been sent.
const THEN: u64 = 2 * SECOND;

fn capture(kernel: &Kernel, offset_ns: u64) -> Result<Debts> {
    let buckets = kernel.buckets();
    Ok(buckets.capture(&kernel.tables.units, START + offset_ns)?)
}

fn restore(kernel: &Kernel, debts: &Debts, offset_ns: u64, passed_ns: u64) -> Result<Restored> {
    let units = &kernel.tables.units;
    Ok(kernel
        .buckets()
        .restore(debts, units, START + offset_ns, passed_ns)?)
}

fn assert_about_the_same(found: Level, expected: Level, what: &str) {
    let is_near = |one: u64, other: u64| one.abs_diff(other) <= 5;
    assert_eq!(found.remaining, expected.remaining, "{what}");
    // A tick of such a window is less than a nanosecond long.
    assert!(is_near(found.retry_in_ns, expected.retry_in_ns), "{what}");
    assert!(is_near(found.reset_in_ns, expected.reset_in_ns), "{what}");
}

#[test]
fn a_restored_bucket_owes_what_it_would() -> Result<()> {
    // The clock of another boot.
    const AFTER: u64 = 777_777 * SECOND;
    for strategy in Strategy::ALL {
        for [from, to] in [
            [Store::Table, Store::Table],
            [Store::Hash, Store::Hash],
            [Store::Hash, Store::Table],
        ] {
            let before = spent(strategy, from, CAPACITY)?;
            let debts = capture(&before, THEN)?;
            for seconds in [0, 97, 250] {
                let passed = seconds * SECOND;
                let mut after = Kernel::new(limit(strategy, 10, 100), to, CAPACITY)?;
                let restored = restore(&after, &debts, AFTER, passed)?;
                let what = format!("{strategy:?} {from:?} {to:?} {seconds} s");
                let owing = SPENT.iter().filter(|(source, _)| {
                    let level = before.level(*source, THEN + passed);
                    level.is_ok_and(|level| level.reset_in_ns > 0)
                });
                let owing = owing.count() as u64;
                let expected = Restored {
                    restored: owing,
                    full: debts.count() - owing,
                    lost: 0,
                };
                assert_eq!(restored, expected, "{what}");
                for (source, _) in SPENT {
                    let expected = before.level(source, THEN + passed)?;
                    let found = after.level(source, AFTER)?;
                    assert_about_the_same(found, expected, &format!("{what} {source}"));
                    // The kernel sees it as well.
                    for _ in 0..found.remaining {
                        assert!(after.passes(source, AFTER)?, "{what} {source}");
                    }
                    assert!(!after.passes(source, AFTER)?, "{what} {source}");
                }
            }
        }
    }
    Ok(())
}

/// A moving window is one bucket, however many packets its log has.
#[test]
fn buckets_are_counted() -> Result<()> {
    for strategy in Strategy::ALL {
        for store in STORES {
            let kernel = spent(strategy, store, CAPACITY)?;
            assert_eq!(capture(&kernel, THEN)?.count(), 4, "{strategy:?} {store:?}");
        }
    }
    Ok(())
}

/// The daemon does so when the buckets get new maps: what was spent from the old ones meanwhile is
/// added once the new ones are in use.
#[test]
fn what_was_spent_meanwhile_is_added() -> Result<()> {
    for strategy in Strategy::ALL {
        for store in STORES {
            let mut old = spent(strategy, store, CAPACITY)?;
            let new = Kernel::new(limit(strategy, 10, 100), store, CAPACITY)?;
            let owed = capture(&old, THEN)?;
            restore(&new, &owed, THEN, 0)?;
            old.spend(1, 3, THEN + 2 * SECOND)?;
            old.spend(5, 6, THEN + 3 * SECOND)?;
            let later = THEN + 4 * SECOND;
            let since = capture(&old, later)?.since(&owed, 4 * SECOND);
            assert_eq!(since.count(), 2, "{strategy:?} {store:?}");
            restore(&new, &since, later, 0)?;
            for source in 1..=5 {
                let (found, expected) = (new.level(source, later)?, old.level(source, later)?);
                let what = format!("{strategy:?} {store:?} {source}");
                assert_about_the_same(found, expected, &what);
            }
        }
    }
    Ok(())
}

/// In a larger table every bucket and its log are in all lines where they may be looked for; back
/// in the smaller one, they are one again.
#[test]
fn tables_of_other_sizes() -> Result<()> {
    for strategy in Strategy::ALL {
        let before = spent(strategy, Store::Table, CAPACITY)?;
        let debts = capture(&before, THEN)?;
        let larger = Kernel::new(limit(strategy, 10, 100), Store::Table, 8 * CAPACITY)?;
        assert_eq!(restore(&larger, &debts, THEN, 0)?.restored, 4);
        let debts = capture(&larger, THEN)?;
        assert_eq!(debts.count(), 8 * 4);
        let smaller = Kernel::new(limit(strategy, 10, 100), Store::Table, CAPACITY)?;
        assert_eq!(restore(&smaller, &debts, THEN, 0)?.restored, 4);
        for kernel in [&larger, &smaller] {
            for (source, _) in SPENT {
                let (found, expected) = (kernel.level(source, THEN)?, before.level(source, THEN)?);
                let what = format!("{strategy:?} {source}");
                assert_about_the_same(found, expected, &what);
            }
        }
    }
    Ok(())
}

/// Buckets whose owners are unknown are lost; a moving window counts once.
#[test]
fn debts_of_a_table_are_not_restored_into_the_hash_map() -> Result<()> {
    for strategy in Strategy::ALL {
        let debts = capture(&spent(strategy, Store::Table, CAPACITY)?, THEN)?;
        let after = Kernel::new(limit(strategy, 10, 100), Store::Hash, CAPACITY)?;
        let lost = Restored {
            lost: 4,
            ..Restored::default()
        };
        assert_eq!(restore(&after, &debts, THEN, 0)?, lost, "{strategy:?}");
        assert_eq!(after.trial.maps().bucket_count()?, 0);
    }
    Ok(())
}
