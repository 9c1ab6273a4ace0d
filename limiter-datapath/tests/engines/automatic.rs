//! Automatic rates: both engines use the rate in force, through all its changes.

use anyhow::Result;
use limiter_common::{
    limit::{BUILT_IN, Cost, IdFormat, LimitId},
    reason::Reason::{OverLimit, Reserved, WithinLimits},
    strategy::{Strategy as Rule, gcra::CurrentRate},
};
use limiter_policy::{
    config::Store,
    policy::{
        Limit, Rate, Reserve, ReserveSize as Part,
        automatic::{at_floor, interval_of},
    },
};
use proptest::{prelude::*, test_runner::TestRunner};
use testbed::Frame;

use crate::{
    differential::generate,
    engine::{Engines, START, policy},
};

const SECOND: u64 = 1_000_000_000;
const MS: u64 = 1_000_000;

const ID: LimitId = LimitId(32);
/// 100 tokens at once.
const FLOOR: u64 = 1_000;
/// 500 tokens at once.
const CEILING: u64 = 5_000;

fn automatic() -> Limit {
    Limit {
        name: "All".to_owned(),
        id: ID,
        id_format: IdFormat::Total,
        cost: Cost::Packets,
        ceiling: Some(CEILING),
        ..Limit::of_built_in(&BUILT_IN[0], Some(at_floor(FLOOR)))
    }
}

fn frame() -> Result<Vec<u8>> {
    Frame::new("192.0.2.1".parse()?, "198.51.100.1".parse()?).udp(1, 2, b"")
}

/// Sends packets `offset_ns` after the start of the engines' clocks; returns how many pass.
fn passing(engines: &mut Engines, offset_ns: u64, packets: usize) -> Result<usize> {
    let frame = frame()?;
    let reasons = (0..packets).map(|_| engines.judge(offset_ns, &frame));
    Ok(reasons.filter(|reason| *reason == WithinLimits).count())
}

/// Gives the limit a rate, by its emission interval in nanoseconds. It holds until `offset_ns`
/// after the start of the engines' clocks, or a little shorter.
fn set_rate(engines: &mut Engines, interval_ns: u64, offset_ns: u64) -> Result<()> {
    let rate = CurrentRate::new(interval_ns, START + offset_ns);
    Ok(engines.set_rate(ID, rate)?)
}

fn in_both_stores(check: impl Fn(Store) -> Result<()>) -> Result<()> {
    check(Store::Table)?;
    check(Store::Hash)
}

#[test]
fn the_rate_in_force_decides_until_it_ends() -> Result<()> {
    in_both_stores(|store| {
        let mut engines = Engines::with(&policy([automatic()]), store)?;
        assert_eq!(passing(&mut engines, 0, 120)?, 100, "the floor");
        set_rate(&mut engines, interval_of(2_500), 10 * SECOND)?;
        assert_eq!(passing(&mut engines, 0, 5)?, 0, "as empty as before");
        assert_eq!(passing(&mut engines, 50 * MS, 200)?, 125, "half full");
        assert_eq!(passing(&mut engines, SECOND, 400)?, 250);
        // No rate exceeds the bounds.
        set_rate(&mut engines, 1, 10 * SECOND)?;
        assert_eq!(passing(&mut engines, 2 * SECOND, 600)?, 500, "the ceiling");
        set_rate(&mut engines, CurrentRate::LONGEST_INTERVAL, 10 * SECOND)?;
        assert_eq!(passing(&mut engines, 3 * SECOND, 120)?, 100, "the floor");
        set_rate(&mut engines, interval_of(2_000), 10 * SECOND)?;
        assert_eq!(passing(&mut engines, 9 * SECOND, 250)?, 200);
        assert_eq!(
            passing(&mut engines, 10 * SECOND, 250)?,
            100,
            "nobody renewed it"
        );
        assert_eq!(passing(&mut engines, 11 * SECOND, 250)?, 100);
        engines.assert_same_state();
        Ok(())
    })
}

/// A limit of another strategy beside it adds the code of windows to the program.
#[test]
fn beside_a_window() -> Result<()> {
    let window = Limit {
        name: "Window".to_owned(),
        id: LimitId(33),
        strategy: Rule::FixedWindow,
        ceiling: None,
        default: Some(Rate {
            burst: 1_000,
            count: 1_000,
            period_ns: SECOND,
        }),
        ..automatic()
    };
    let mut engines = Engines::new(&policy([automatic(), window]))?;
    set_rate(&mut engines, interval_of(2_500), 10 * SECOND)?;
    assert_eq!(passing(&mut engines, 0, 400)?, 250);
    engines.assert_same_state();
    Ok(())
}

#[test]
fn a_reserve_is_a_part_of_the_bucket_at_every_rate() -> Result<()> {
    let half = Part::Fraction("50%".parse()?);
    let limit = Limit {
        reserve: Some(Reserve {
            familiar: Part::NOTHING,
            fresh: Part::NOTHING,
            retried: Part::NOTHING,
            unknown: half,
        }),
        ..automatic()
    };
    in_both_stores(|store| {
        let mut engines = Engines::with(&policy([limit.clone()]), store)?;
        assert_eq!(passing(&mut engines, 0, 60)?, 50);
        assert_eq!(engines.judge(0, &frame()?), Reserved);
        set_rate(&mut engines, interval_of(4_000), 30 * SECOND)?;
        assert_eq!(engines.judge(0, &frame()?), Reserved, "as full as before");
        // Too late to count as a retry of the refused packets.
        assert_eq!(passing(&mut engines, 20 * SECOND, 250)?, 200);
        engines.assert_same_state();
        Ok(())
    })
}

#[test]
fn both_engines_agree_whatever_the_rate_does() -> Result<()> {
    // Some 3600 packets a second: between the floor and the ceiling.
    let pause = prop_oneof![100 => 0..150_000_u64, 1 => 10 * MS..30 * MS];
    let steps = (pause, any::<bool>(), 1..5 * MS, 0..50 * MS);
    let steps = generate(
        &prop::collection::vec(steps, 4_000),
        &mut TestRunner::default(),
    );
    in_both_stores(|store| {
        let mut engines = Engines::with(&policy([automatic()]), store)?;
        let (mut now, mut seen) = (0, [0; 2]);
        for (pause, moves, interval, holds) in steps.iter().copied() {
            if moves {
                set_rate(&mut engines, interval, now + holds)?;
            }
            match engines.judge(now, &frame()?) {
                WithinLimits => seen[0] += 1,
                OverLimit => seen[1] += 1,
                reason => panic!("{reason:?}"),
            }
            now += pause;
        }
        assert!(seen.iter().all(|seen| *seen > 100), "{seen:?}");
        engines.assert_same_state();
        Ok(())
    })
}
