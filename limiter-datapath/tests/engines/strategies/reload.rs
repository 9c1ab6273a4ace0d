//! A limit with a changed rate keeps the counts of its buckets. A limit with a changed strategy begins
//! full.

use anyhow::Result;
use limiter_common::{
    limit::FIRST_CUSTOM_ID,
    reason::Reason::{OverLimit, WithinLimits},
    strategy::Strategy,
};
use limiter_policy::policy::Limit;

use super::{SECOND, STORES, frame_to, level, limit};
use crate::engine::{Engines, apart, stay_on_one_cpu};

const WINDOWS: [Strategy; 3] = [
    Strategy::FixedWindow,
    Strategy::MovingWindow,
    Strategy::SlidingWindowCounter,
];

/// A limit, its successor, and the exact number of packets that pass then.
type Change = (Limit, Limit, u64);

/// The indices of `count` limits that are apart, and packets for each.
fn cases(count: usize) -> Result<Vec<(u32, Vec<u8>)>> {
    let cases = (0..).zip(FIRST_CUSTOM_ID..).take(count);
    cases
        .map(|(limit_index, port)| Ok((limit_index, frame_to(1, port)?)))
        .collect()
}

/// Four packets pass under each limit, and all change at once; then exactly `left` pass, and no more until
/// the reported time.
fn check(changes: &[Change]) -> Result<()> {
    stay_on_one_cpu()?;
    let cases = cases(changes.len())?;
    let each = || cases.iter().zip(changes);
    let level = |engines: &Engines, limit_index: u32, now| {
        level(engines.maps(), engines.tables(), limit_index, 1, now)
    };
    for store in STORES {
        let before = changes.iter().map(|(before, ..)| before.clone());
        let mut engines = Engines::with(&apart(before), store)?;
        for second in 0..4 {
            for (_, frame) in &cases {
                assert_eq!(engines.judge(second * SECOND, frame), WithinLimits);
            }
        }
        engines.replace(&apart(changes.iter().map(|(_, after, _)| after.clone())))?;
        let now = 5 * SECOND;
        for ((limit_index, frame), (before, after, left)) in each() {
            let case = format!("{store:?}: {before:?}, then {after:?}");
            let owed = level(&engines, *limit_index, now)?;
            assert_eq!(owed.remaining, *left, "{case}");
            for number in 0..*left {
                let reason = engines.judge(now, frame);
                assert_eq!(reason, WithinLimits, "{number} {case}");
            }
            assert_eq!(engines.judge(now, frame), OverLimit, "{case}");
        }
        engines.assert_same_state();
        for ((limit_index, frame), (before, after, _)) in each() {
            let case = format!("{store:?}: {before:?}, then {after:?}");
            let wait = level(&engines, *limit_index, now)?.retry_in_ns;
            let early = engines.judge(now + wait / 2, frame);
            assert_eq!(early, OverLimit, "{case}");
            assert_eq!(engines.judge(now + wait, frame), WithinLimits, "{case}");
        }
        engines.assert_same_state();
    }
    Ok(())
}

#[test]
fn what_was_counted_stays() -> Result<()> {
    let changes = WINDOWS.into_iter().flat_map(|strategy| {
        let before = limit(strategy, 10, 100);
        let after = [(20, 100, 16), (3, 100, 0), (10, 300, 6), (10, 20, 6)];
        after.map(|(count, seconds, left)| (before.clone(), limit(strategy, count, seconds), left))
    });
    check(&changes.collect::<Vec<_>>())
}

/// A window of another length ends at its old time, if that is within the new period. Packets in a log
/// count for as long as before.
#[test]
fn what_was_counted_counts_as_long_as_before() -> Result<()> {
    let changes = [
        (Strategy::FixedWindow, 300, 100),
        (Strategy::FixedWindow, 20, 25),
        (Strategy::MovingWindow, 300, 103),
        (Strategy::MovingWindow, 20, 103),
    ];
    let cases = cases(changes.len())?;
    for store in STORES {
        let before = changes.map(|(strategy, ..)| limit(strategy, 10, 100));
        let mut engines = Engines::with(&apart(before), store)?;
        for second in 0..4 {
            for (_, frame) in &cases {
                engines.judge(second * SECOND, frame);
            }
        }
        let after = changes.map(|(strategy, seconds, _)| limit(strategy, 10, seconds));
        engines.replace(&apart(after))?;
        for ((limit_index, _), (strategy, _, ends_after)) in cases.iter().zip(changes) {
            let (maps, tables) = (engines.maps(), engines.tables());
            let level = level(maps, tables, *limit_index, 1, 5 * SECOND)?;
            let ends_in = (ends_after - 5) * SECOND;
            let rounded = level.reset_in_ns.abs_diff(ends_in);
            assert!(rounded < SECOND / 10, "{store:?} {strategy:?} {level:?}");
        }
    }
    Ok(())
}

#[test]
fn a_limit_with_another_strategy_begins_full() -> Result<()> {
    let changes = Strategy::ALL.into_iter().flat_map(|before| {
        let others = Strategy::ALL
            .into_iter()
            .filter(move |after| *after != before);
        others.map(move |after| (limit(before, 10, 100), limit(after, 10, 100), 10))
    });
    check(&changes.collect::<Vec<_>>())
}
