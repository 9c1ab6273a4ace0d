//! Limits of several strategies for the same packets: all count a packet, or none; except that a
//! fixed window counts what it refuses itself.

use anyhow::Result;
use limiter_common::{
    limit::LimitId,
    owner::BucketKey,
    reason::{
        Action,
        Reason::{OverLimit, WithinLimits},
    },
    strategy::Strategy,
};
use limiter_datapath::{
    kernel::possible_cpus,
    native::{BytesFrame, MemoryBuckets, decide_once},
};
use limiter_policy::policy::{CompiledPolicy, Limit};
use proptest::prelude::*;

use super::{SECOND, STORES, address, frame, limit};
use crate::{
    brute_force::Exact,
    engine::{Engines, START, policy},
};

/// Makes limits of those strategies and counts in 100 seconds, for the same packets.
fn limits(numbers: &[(Strategy, u64)]) -> Vec<Limit> {
    let limits = (1..).zip(numbers).map(|(id, (strategy, count))| Limit {
        id: LimitId(id),
        name: format!("Limit{id}"),
        ..limit(*strategy, *count, 100)
    });
    limits.collect()
}

/// Returns the state of one limit's bucket, by the limit's id.
fn bucket(engines: &Engines, id: u16) -> Result<Option<u64>> {
    let key = BucketKey::of_source(LimitId(id), address(1).into(), 32);
    Ok(engines.maps().bucket(&key)?.map(|bucket| bucket.state))
}

/// If one limit refuses, first or last, the others keep their tokens.
#[test]
fn limits_that_would_pass_a_packet_do_not_count_it() -> Result<()> {
    let frame = frame(1)?;
    for store in STORES {
        for refusing in Strategy::ALL {
            for other in Strategy::ALL {
                for strict_first in [true, false] {
                    let what = format!("{store:?}: {refusing:?} refuses, {other:?} does not");
                    let mut numbers = [(refusing, 2), (other, 9)];
                    if !strict_first {
                        numbers.reverse();
                    }
                    let other_id = if strict_first { 2 } else { 1 };
                    let mut engines = Engines::with(&policy(limits(&numbers)), store)?;
                    for _ in 0..2 {
                        assert_eq!(engines.judge(0, &frame), WithinLimits, "{what}");
                    }
                    let before = bucket(&engines, other_id)?;
                    assert!(before.is_some(), "{what}");
                    for _ in 0..3 {
                        let verdict = engines.verdict(SECOND, &frame);
                        assert_eq!(verdict.reason, OverLimit, "{what}");
                        let denied_by = u32::from(!strict_first);
                        assert_eq!(verdict.denied_by(), Some(denied_by), "{what}");
                    }
                    assert_eq!(bucket(&engines, other_id)?, before, "{what}");
                    engines.assert_same_state();
                }
            }
        }
    }
    Ok(())
}

/// This holds even if another limit refuses as well.
#[test]
fn a_fixed_window_counts_what_it_refuses() -> Result<()> {
    let frame = frame(1)?;
    for store in STORES {
        for other in Strategy::ALL {
            let numbers = [(Strategy::FixedWindow, 2), (other, 2)];
            let mut engines = Engines::with(&policy(limits(&numbers)), store)?;
            for _ in 0..2 {
                assert_eq!(engines.judge(0, &frame), WithinLimits);
            }
            let full = bucket(&engines, 1)?;
            assert_eq!(engines.judge(SECOND, &frame), OverLimit);
            let refused = bucket(&engines, 1)?;
            assert_ne!(refused, full, "{store:?} {other:?}");
            // It counts at most one more than the limit.
            assert_eq!(engines.judge(SECOND, &frame), OverLimit);
            assert_eq!(bucket(&engines, 1)?, refused);
            engines.assert_same_state();
        }
    }
    Ok(())
}

const WINDOWS: [Strategy; 3] = [
    Strategy::FixedWindow,
    Strategy::MovingWindow,
    Strategy::SlidingWindowCounter,
];

proptest! {
    /// Packet by packet, they decide like exact windows that are asked one after the other.
    #[test]
    fn limits_of_all_kinds_are_judged_together(
        numbers in prop::collection::vec((prop::sample::select(WINDOWS.to_vec()), 1u64..10), 1..6),
        steps in prop::collection::vec(
            prop_oneof![
                6 => Just(0),
                1 => Just(100 * SECOND),
                1 => Just(100 * SECOND - 1),
                1 => Just(50 * SECOND),
                2 => 0..100 * SECOND,
            ],
            1..150,
        ),
    ) {
        let tables = CompiledPolicy::new(&policy(limits(&numbers)), possible_cpus()).expect("it compiles");
        let ticks = tables.rates.iter().map(|parameters| parameters.window.layout.ns(1));
        prop_assert!(ticks.into_iter().all(|tick| tick == 1));
        let exact = |(strategy, count): &(Strategy, u64)| Exact::new(*strategy, *count, 100 * SECOND);
        let mut exact: Vec<_> = numbers.iter().map(exact).collect();
        let (buckets, frame) = (MemoryBuckets::default(), frame(1).expect("a frame"));
        let mut now = START;
        for step in steps {
            now += step;
            let verdict = decide_once(&BytesFrame(&frame), now, &tables, &buckets, &(), &());
            let passes = exact.iter().all(|limit| limit.would_pass(now, 1));
            prop_assert_eq!(verdict.action(&tables) == Action::Pass, passes);
            for limit in &mut exact {
                if passes {
                    limit.admit(now, 1);
                } else if !limit.would_pass(now, 1) {
                    limit.refuse(now, 1);
                }
            }
        }
    }
}
