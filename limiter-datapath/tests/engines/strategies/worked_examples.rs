//! The worked examples of the Python library's documentation, with packets, through both engines.

use anyhow::Result;
use limiter_common::{
    limit::BUILT_IN,
    reason::Reason::{OverLimit, WithinLimits},
    strategy::{Level, Strategy},
};
use limiter_policy::policy::{Limit, Rate};

use super::{SECOND, STORES, frame, level};
use crate::engine::{Engines, policy};

/// The seconds after the start, the number of packets at that time, and the number that passes.
type Step = (u64, u64, u64);

/// Checks that both engines in both stores pass exactly these packets, and that before each step
/// they report as many tokens left as packets then pass.
fn check(strategy: Strategy, per_minute: u64, steps: &[Step]) -> Result<()> {
    let rate = Rate {
        burst: per_minute,
        count: per_minute,
        period_ns: 60 * SECOND,
    };
    let limit = Limit {
        strategy,
        ..Limit::of_built_in(&BUILT_IN[0], Some(rate))
    };
    for store in STORES {
        let mut engines = Engines::with(&policy([limit.clone()]), store)?;
        for (second, packets, passing) in steps {
            let now = second * SECOND;
            let Level { remaining, .. } = level(engines.maps(), engines.tables(), 0, 1, now)?;
            assert_eq!(remaining.min(*packets), *passing, "{store:?} at {second} s");
            for number in 0..*packets {
                let reason = if number < *passing {
                    WithinLimits
                } else {
                    OverLimit
                };
                let judged = engines.judge(now, &frame(1)?);
                assert_eq!(judged, reason, "{store:?}: {number} at {second} s");
            }
        }
        engines.assert_same_state();
    }
    Ok(())
}

/// 10 per minute, from 00:00:45 to 00:01:45, and from then to 00:02:45.
#[test]
fn fixed_window() -> Result<()> {
    check(
        Strategy::FixedWindow,
        10,
        &[
            (45, 1, 1),
            (50, 4, 4),
            (104, 6, 5),
            (105, 3, 3),
            (120, 9, 7),
            (164, 1, 0),
            (165, 11, 10),
        ],
    )
}

/// 10 per minute.
#[test]
fn moving_window() -> Result<()> {
    check(
        Strategy::MovingWindow,
        10,
        &[
            (10, 1, 1),
            (20, 2, 2),
            (30, 4, 4),
            (50, 3, 3),
            // The tenth last packet is from 00:00:10, 61 seconds ago.
            (71, 1, 1),
            // Now it is from 00:00:20, 52 seconds ago.
            (72, 1, 0),
            (79, 1, 0),
            (80, 3, 2),
            (90, 5, 4),
        ],
    )
}

/// 100 per minute: 40 in the previous bucket; 80 in the current bucket half a minute after it
/// began, and ten seconds later.
#[test]
fn sliding_window_counter() -> Result<()> {
    check(
        Strategy::SlidingWindowCounter,
        100,
        &[
            (1, 40, 40),
            (62, 61, 60),
            // With half of the previous 40 they are 100, and a second later 99 and a third.
            (91, 21, 20),
            (92, 1, 0),
            // With 40 × 20 / 60 left of the previous 40: 93 and a third.
            (101, 7, 6),
        ],
    )
}
