//! A limit whose rate changes keeps what its buckets have counted; one whose strategy changes
//! begins full.

use anyhow::Result;
use limiter_common::{
    reason::Reason::{OverLimit, WithinLimits},
    strategy::Strategy,
};
use limiter_policy::policy::Limit;

use super::{SECOND, STORES, frame, level, limit};
use crate::engine::{Engines, policy};

const WINDOWS: [Strategy; 3] = [
    Strategy::FixedWindow,
    Strategy::MovingWindow,
    Strategy::SlidingWindowCounter,
];

/// Four packets pass under one limit; under the next one exactly `left` pass, and no more until the
/// reported time.
fn check(before: &Limit, after: &Limit, left: u64) -> Result<()> {
    let frame = frame(1)?;
    for store in STORES {
        let changed = format!("{store:?}: {before:?}, then {after:?}");
        let mut engines = Engines::with(&policy([before.clone()]), store)?;
        for second in 0..4 {
            assert_eq!(engines.judge(second * SECOND, &frame), WithinLimits);
        }
        engines.replace(&policy([after.clone()]))?;
        let now = 5 * SECOND;
        let level = |engines: &Engines, now| level(engines.maps(), engines.tables(), 1, now);
        let owed = level(&engines, now)?;
        assert_eq!(owed.remaining, left, "{changed}");
        for number in 0..left {
            assert_eq!(
                engines.judge(now, &frame),
                WithinLimits,
                "{number} {changed}"
            );
        }
        assert_eq!(engines.judge(now, &frame), OverLimit, "{changed}");
        engines.assert_same_state();
        let wait = level(&engines, now)?.retry_in_ns;
        assert_eq!(
            engines.judge(now + wait / 2, &frame),
            OverLimit,
            "{changed}"
        );
        assert_eq!(engines.judge(now + wait, &frame), WithinLimits, "{changed}");
        engines.assert_same_state();
    }
    Ok(())
}

#[test]
fn what_was_counted_stays() -> Result<()> {
    for strategy in WINDOWS {
        let before = limit(strategy, 10, 100);
        for (count, seconds, left) in [(20, 100, 16), (3, 100, 0), (10, 300, 6), (10, 20, 6)] {
            check(&before, &limit(strategy, count, seconds), left)?;
        }
    }
    Ok(())
}

/// A window of another length ends when it would have, if that is within the new period, and
/// packets in a log count for as long as before.
#[test]
fn what_was_counted_counts_as_long_as_before() -> Result<()> {
    for store in STORES {
        for (strategy, seconds, ends_after) in [
            (Strategy::FixedWindow, 300, 100),
            (Strategy::FixedWindow, 20, 25),
            (Strategy::MovingWindow, 300, 103),
            (Strategy::MovingWindow, 20, 103),
        ] {
            let mut engines = Engines::with(&policy([limit(strategy, 10, 100)]), store)?;
            for second in 0..4 {
                engines.judge(second * SECOND, &frame(1)?);
            }
            engines.replace(&policy([limit(strategy, 10, seconds)]))?;
            let level = level(engines.maps(), engines.tables(), 1, 5 * SECOND)?;
            let ends_in = (ends_after - 5) * SECOND;
            let rounded = level.reset_in_ns.abs_diff(ends_in);
            assert!(rounded < SECOND / 10, "{store:?} {strategy:?} {level:?}");
        }
    }
    Ok(())
}

#[test]
fn a_limit_with_another_strategy_begins_full() -> Result<()> {
    for before in Strategy::ALL {
        for after in Strategy::ALL.into_iter().filter(|after| *after != before) {
            check(&limit(before, 10, 100), &limit(after, 10, 100), 10)?;
        }
    }
    Ok(())
}
