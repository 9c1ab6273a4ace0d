//! Debts captured from one program's maps and restored into another's.

use anyhow::Result;
use limiter_common::strategy::{Level, Strategy};
use limiter_datapath::{kernel::RestoreCounts, state::Debts};
use limiter_policy::config::Store;

use super::{Kernel, SECOND, STORES};
use crate::engine::START;

const CAPACITY: u32 = 65_536;

/// Each source, and the number of its packets. A hundred seconds admit ten, so some were refused.
const SPENT: [(u32, u64); 4] = [(1, 1), (2, 7), (3, 10), (4, 13)];

/// The limits of [`Strategy::ALL`], by their index.
const LIMITS: std::ops::Range<u16> = 0..4;

/// Each limit has a bucket for each source.
const BUCKETS: u64 = (Strategy::ALL.len() * SPENT.len()) as u64;

fn spent(store: Store, capacity: u32) -> Result<Kernel> {
    let mut kernel = Kernel::of_all(store, capacity)?;
    for limit_index in LIMITS {
        let kernel = kernel.trying(limit_index);
        for (source, packets) in SPENT {
            for number in 0..packets {
                kernel.passes(source, number * SECOND / 10)?;
            }
        }
    }
    Ok(kernel)
}

/// The time by which all packets have been sent.
const THEN: u64 = 2 * SECOND;

fn capture(kernel: &Kernel, offset_ns: u64) -> Result<Debts> {
    let buckets = kernel.buckets();
    Ok(buckets.capture(&kernel.tables.units, START + offset_ns)?)
}

fn restore(
    kernel: &Kernel,
    debts: &Debts,
    offset_ns: u64,
    passed_ns: u64,
) -> Result<RestoreCounts> {
    let units = &kernel.tables.units;
    Ok(kernel
        .buckets()
        .restore(debts, units, START + offset_ns, passed_ns)?)
}

fn assert_about_the_same(found: Level, expected: Level, case: &str) {
    let is_near = |one: u64, other: u64| one.abs_diff(other) <= 5;
    assert_eq!(found.remaining, expected.remaining, "{case}");
    // A tick of such a window is less than a nanosecond long.
    assert!(is_near(found.retry_in_ns, expected.retry_in_ns), "{case}");
    assert!(is_near(found.reset_in_ns, expected.reset_in_ns), "{case}");
}

#[test]
fn a_restored_bucket_owes_what_it_would() -> Result<()> {
    // The clock of another boot.
    const AFTER: u64 = 777_777 * SECOND;
    for [from, to] in [
        [Store::Table, Store::Table],
        [Store::Hash, Store::Hash],
        [Store::Hash, Store::Table],
    ] {
        let mut before = spent(from, CAPACITY)?;
        let debts = capture(&before, THEN)?;
        for seconds in [0, 97, 250] {
            let passed = seconds * SECOND;
            let mut after = Kernel::of_all(to, CAPACITY)?;
            let restored = restore(&after, &debts, AFTER, passed)?;
            let mut owing = 0;
            for limit_index in LIMITS {
                let (before, after) = (before.trying(limit_index), after.trying(limit_index));
                for (source, _) in SPENT {
                    let case = format!("{limit_index} {from:?} {to:?} {seconds} s {source}");
                    let expected = before.level(source, THEN + passed)?;
                    owing += u64::from(expected.reset_in_ns > 0);
                    let found = after.level(source, AFTER)?;
                    assert_about_the_same(found, expected, &case);
                    // The kernel sees it as well.
                    for _ in 0..found.remaining {
                        assert!(after.passes(source, AFTER)?, "{case}");
                    }
                    assert!(!after.passes(source, AFTER)?, "{case}");
                }
            }
            let expected = RestoreCounts {
                restored: owing,
                full: debts.count() - owing,
                lost: 0,
            };
            assert_eq!(restored, expected, "{from:?} {to:?} {seconds} s");
        }
    }
    Ok(())
}

/// A moving window is one bucket, with any number of packets in its log.
#[test]
fn buckets_are_counted() -> Result<()> {
    for store in STORES {
        let kernel = spent(store, CAPACITY)?;
        assert_eq!(capture(&kernel, THEN)?.count(), BUCKETS, "{store:?}");
    }
    Ok(())
}

/// The daemon does so when the buckets get new maps: tokens spent from the old maps meanwhile are
/// added once the new ones are in use.
#[test]
fn what_was_spent_meanwhile_is_added() -> Result<()> {
    for store in STORES {
        let mut old = spent(store, CAPACITY)?;
        let mut new = Kernel::of_all(store, CAPACITY)?;
        let owed = capture(&old, THEN)?;
        restore(&new, &owed, THEN, 0)?;
        for limit_index in LIMITS {
            let old = old.trying(limit_index);
            old.spend(1, 3, THEN + 2 * SECOND)?;
            old.spend(5, 6, THEN + 3 * SECOND)?;
        }
        let later = THEN + 4 * SECOND;
        let since = capture(&old, later)?.since(&owed, 4 * SECOND);
        assert_eq!(since.count(), 2 * Strategy::ALL.len() as u64, "{store:?}");
        restore(&new, &since, later, 0)?;
        for limit_index in LIMITS {
            let (old, new) = (old.trying(limit_index), new.trying(limit_index));
            for source in 1..=5 {
                let (found, expected) = (new.level(source, later)?, old.level(source, later)?);
                let case = format!("{limit_index} {store:?} {source}");
                assert_about_the_same(found, expected, &case);
            }
        }
    }
    Ok(())
}

/// In a larger table every bucket and its log are in all lines where a look-up may search for them.
/// Back in the smaller table, they are one again.
#[test]
fn tables_of_other_sizes() -> Result<()> {
    let mut before = spent(Store::Table, CAPACITY)?;
    let debts = capture(&before, THEN)?;
    let mut larger = Kernel::of_all(Store::Table, 8 * CAPACITY)?;
    assert_eq!(restore(&larger, &debts, THEN, 0)?.restored, BUCKETS);
    let debts = capture(&larger, THEN)?;
    assert_eq!(debts.count(), 8 * BUCKETS);
    let mut smaller = Kernel::of_all(Store::Table, CAPACITY)?;
    assert_eq!(restore(&smaller, &debts, THEN, 0)?.restored, BUCKETS);
    for kernel in [&mut larger, &mut smaller] {
        for limit_index in LIMITS {
            let (before, kernel) = (before.trying(limit_index), kernel.trying(limit_index));
            for (source, _) in SPENT {
                let (found, expected) = (kernel.level(source, THEN)?, before.level(source, THEN)?);
                let case = format!("{limit_index} {source}");
                assert_about_the_same(found, expected, &case);
            }
        }
    }
    Ok(())
}

/// Buckets with unknown keys are lost; a moving window counts once.
#[test]
fn debts_of_a_table_are_not_restored_into_the_hash_map() -> Result<()> {
    let debts = capture(&spent(Store::Table, CAPACITY)?, THEN)?;
    let after = Kernel::of_all(Store::Hash, CAPACITY)?;
    let lost = RestoreCounts {
        lost: BUCKETS,
        ..RestoreCounts::default()
    };
    assert_eq!(restore(&after, &debts, THEN, 0)?, lost);
    assert_eq!(after.trial.maps().bucket_count()?, 0);
    Ok(())
}
