//! A policy of all strategies at once.

use anyhow::Result;
use limiter_common::{
    limit::{Cost, FIRST_CUSTOM_ID, IdFormat, LimitId},
    reason::Reason::{self, OverLimit, WithinLimits},
    strategy::Strategy,
};
use limiter_policy::policy::{Limit, Mode};

use super::{SECOND, STORES, frame, limit};
use crate::engine::{Engines, policy};

/// Each limit is the strictest for some time, and one of each strategy observes.
fn limits() -> Vec<Limit> {
    let numbers = [(3, 1), (5, 10), (8, 100), (9, 1_000)];
    let enforcing = Strategy::ALL.into_iter().zip(numbers);
    let observing = Strategy::ALL.map(|strategy| (strategy, (1, 1)));
    enforcing
        .chain(observing)
        .zip(FIRST_CUSTOM_ID..)
        .map(|((strategy, (count, seconds)), id)| Limit {
            name: format!("Limit{id}"),
            id: LimitId(id),
            id_format: IdFormat::IpAddress,
            cost: Cost::Packets,
            mode: if (count, seconds) == (1, 1) {
                Mode::Observe
            } else {
                Mode::Enforce
            },
            ..limit(strategy, count, seconds)
        })
        .collect()
}

#[test]
fn each_decides_in_its_time() -> Result<()> {
    const GCRA: Option<u32> = Some(0);
    const FIXED: Option<u32> = Some(1);
    const MOVING: Option<u32> = Some(2);
    const SLIDING: Option<u32> = Some(3);
    let packet = frame(1)?;
    for store in STORES {
        let mut engines = Engines::with(&policy(limits()), store)?;
        let mut check = |at_s: u64, refused_by: Option<u32>| {
            let expected: Reason = match refused_by {
                Some(_) => OverLimit,
                None => WithinLimits,
            };
            let verdict = engines.verdict(at_s * SECOND, &packet);
            assert_eq!(
                (verdict.reason, verdict.refused_by()),
                (expected, refused_by),
                "{store:?}, {at_s} s"
            );
            verdict.would_drop
        };
        assert_eq!(check(0, None), 0);
        // Each observing limit admits one packet.
        assert_eq!(check(0, None), 0b1111_0000);
        check(0, None);
        check(0, GCRA);
        for _ in 0..2 {
            check(1, None);
        }
        check(1, FIXED);
        // The fixed window has ended; the others have not.
        for _ in 0..3 {
            check(10, None);
        }
        check(12, MOVING);
        // The log has forgotten the first packets, the counters none.
        check(100, None);
        check(101, SLIDING);
        engines.assert_same_state();
    }
    Ok(())
}
