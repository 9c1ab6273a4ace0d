//! Limits of several strategies for the same packets: all count a packet, or none does. The
//! exception: a fixed window counts its own refusals.

use anyhow::Result;
use limiter_common::{
    key::BucketKey,
    limit::{FIRST_CUSTOM_ID, LimitId},
    reason::{
        Action,
        Reason::{OverLimit, WithinLimits},
    },
    strategy::Strategy,
};
use limiter_datapath::kernel::possible_cpus;
use limiter_native::{BytesFrame, MemoryBuckets, decide_once};
use limiter_policy::policy::{CompiledPolicy, Limit, Match, Policy};
use proptest::prelude::*;

use super::{SECOND, STORES, address, frame, frame_to, limit};
use crate::{
    brute_force::ExactWindow,
    engine::{Engines, START, policy, stay_on_one_cpu},
};

/// Makes limits of these strategies and counts in 100 seconds, for the same packets.
fn limits(numbers: &[(Strategy, u64)]) -> Vec<Limit> {
    let limits = (FIRST_CUSTOM_ID..).zip(numbers);
    let limits = limits.map(|(id, (strategy, count))| Limit {
        id: LimitId(id),
        name: format!("Limit{id}"),
        ..limit(*strategy, *count, 100)
    });
    limits.collect()
}

/// Two limits for the same packets.
type Pair = [(Strategy, u64); 2];

/// Makes a policy with a separate pair of limits for the packets to each port.
fn pairs(pairs: &[Pair]) -> Policy {
    let numbers: Vec<_> = pairs.iter().flatten().copied().collect();
    let limits = limits(&numbers).into_iter().map(|limit| {
        let port = (limit.id.0 - FIRST_CUSTOM_ID) / 2;
        Limit {
            matching: Match {
                destination_ports: vec![port..=port],
                ..Match::default()
            },
            ..limit
        }
    });
    policy(limits)
}

/// The state of one limit's bucket, by the limit's id.
fn bucket(engines: &Engines, id: u16) -> Result<Option<u64>> {
    let key = BucketKey::of_source(LimitId(id), address(1).into(), 32);
    Ok(engines.maps().bucket(&key)?.map(|bucket| bucket.state))
}

/// If one limit refuses, first or last, the others keep their tokens.
#[test]
fn limits_that_would_pass_a_packet_do_not_count_it() -> Result<()> {
    stay_on_one_cpu()?;
    let both = |refusing| Strategy::ALL.map(|other| [(refusing, 2), (other, 9)]);
    for is_strict_first in [true, false] {
        let mut all: Vec<Pair> = Strategy::ALL.into_iter().flat_map(both).collect();
        if !is_strict_first {
            for pair in &mut all {
                pair.reverse();
            }
        }
        for store in STORES {
            let mut engines = Engines::with(&pairs(&all), store)?;
            for (port, pair) in (0..).zip(&all) {
                let case = format!("{store:?}: {pair:?}");
                let frame = frame_to(1, port)?;
                let first_id = FIRST_CUSTOM_ID + 2 * port;
                let other_id = first_id + u16::from(is_strict_first);
                for _ in 0..2 {
                    assert_eq!(engines.judge(0, &frame), WithinLimits, "{case}");
                }
                let before = bucket(&engines, other_id)?;
                assert!(before.is_some(), "{case}");
                for _ in 0..3 {
                    let verdict = engines.verdict(SECOND, &frame);
                    assert_eq!(verdict.reason, OverLimit, "{case}");
                    let refused_by = 2 * port + u16::from(!is_strict_first);
                    assert_eq!(verdict.refused_by(), Some(refused_by.into()), "{case}");
                }
                assert_eq!(bucket(&engines, other_id)?, before, "{case}");
            }
            engines.assert_same_state();
        }
    }
    Ok(())
}

/// This holds even if another limit refuses as well.
#[test]
fn a_fixed_window_counts_what_it_refuses() -> Result<()> {
    stay_on_one_cpu()?;
    let all = Strategy::ALL.map(|other| [(Strategy::FixedWindow, 2), (other, 2)]);
    for store in STORES {
        let mut engines = Engines::with(&pairs(&all), store)?;
        for (port, pair) in (0..).zip(&all) {
            let frame = frame_to(1, port)?;
            let id = FIRST_CUSTOM_ID + 2 * port;
            for _ in 0..2 {
                assert_eq!(engines.judge(0, &frame), WithinLimits);
            }
            let full = bucket(&engines, id)?;
            assert_eq!(engines.judge(SECOND, &frame), OverLimit);
            let refused = bucket(&engines, id)?;
            assert_ne!(refused, full, "{store:?} {pair:?}");
            // It counts at most one more than the limit.
            assert_eq!(engines.judge(SECOND, &frame), OverLimit);
            assert_eq!(bucket(&engines, id)?, refused);
        }
        engines.assert_same_state();
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
        let exact = |(strategy, count): &(Strategy, u64)| {
            ExactWindow::new(*strategy, *count, 100 * SECOND)
        };
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
