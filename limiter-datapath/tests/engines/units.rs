//! A limit whose rate changes: the debts of its buckets stay the same, in tokens.

use anyhow::{Context as _, Result};
use limiter_common::{
    bucket::Bucket,
    decide::account,
    limit::{BUILT_IN, Cost},
    owner::BucketKey,
    reason::Reason::{OverLimit, WithinLimits},
    strategy::{Level, moving_window::Log},
};
use limiter_policy::{
    config::Store,
    policy::{Limit, Override, OverrideId, Rate},
};
use testbed::Frame;

use crate::engine::{Engines, START, classified, policy};

const SECOND: u64 = 1_000_000_000;

const fn rate(burst: u64, count: u64) -> Rate {
    Rate {
        burst,
        count,
        period_ns: SECOND,
    }
}

/// Counted in nanoseconds.
const SLOW: Rate = rate(10, 1);
const FASTER: Rate = rate(10, 4);
/// Counted in shorter ticks.
const FAST: Rate = rate(10, 7_777);
const FASTEST: Rate = rate(10, 3_000_000_000);

fn limit(rate: Rate) -> Limit {
    Limit::of_built_in(&BUILT_IN[0], Some(rate))
}

fn counting(cost: Cost, rate: Rate) -> Limit {
    Limit {
        cost,
        ..limit(rate)
    }
}

/// Makes a limit with an override for the source.
fn overridden(rate: Rate) -> Result<Limit> {
    let id = OverrideId::Prefix("2001:db8::/64".parse()?);
    let comment = None;
    Ok(Limit {
        overrides: vec![Override { id, rate, comment }],
        ip_rep: None,
        ceiling: None,
        metrics: None,
        ..limit(SLOW)
    })
}

fn source() -> Result<(Vec<u8>, [BucketKey; 2])> {
    let source = "2001:db8::1".parse()?;
    let frame = Frame::new(source, "2001:db8:f::1".parse()?).tcp_syn(1, 2, 0)?;
    let keys = [(&BUILT_IN[0], 128), (&BUILT_IN[1], 48)];
    let keys = keys.map(|(limit, length)| BucketKey::of_source(limit.id, source.into(), length));
    Ok((frame, keys))
}

fn bucket(engines: &Engines, key: &BucketKey) -> Result<Bucket> {
    engines.maps().bucket(key)?.context("a bucket")
}

/// Returns what `explain` would report at [`START`] on the limit at an index.
fn level(engines: &Engines, limit_index: u32) -> Result<Level> {
    let (frame, keys) = source()?;
    let tables = engines.tables();
    let packet = classified(tables, &frame).context("a good packet")?;
    let parameters = account(tables, &packet, limit_index)
        .context("a limit")?
        .parameters;
    let bucket = bucket(engines, &keys[limit_index as usize])?;
    let state = tables.units.state(bucket, parameters.unit, START);
    Ok(parameters.level(START, Some(state), &Log::EMPTY))
}

/// Spends `spent` tokens under one limit; under the next one, exactly `left` packets pass.
fn check(before: &Limit, spent: u64, after: &Limit, left: u64) -> Result<()> {
    let (frame, [key, _]) = source()?;
    for store in [Store::Table, Store::Hash] {
        let mut engines = Engines::with(&policy([before.clone()]), store)?;
        for _ in 0..spent {
            assert_eq!(engines.judge(0, &frame), WithinLimits);
        }
        let written = bucket(&engines, &key)?;
        engines.replace(&policy([after.clone()]))?;
        let changed = format!("{store:?}: {before:?}, {spent} spent, then {after:?}");
        assert_eq!(level(&engines, 0)?.remaining, left, "{changed}");
        assert_eq!(
            bucket(&engines, &key)?,
            written,
            "reading exchanges nothing"
        );
        for number in 0..left {
            assert_eq!(engines.judge(0, &frame), WithinLimits, "{number} {changed}");
            assert_eq!(level(&engines, 0)?.remaining, left - number - 1);
        }
        assert_eq!(engines.judge(0, &frame), OverLimit, "{changed}");
        engines.assert_same_state();
        // Its tokens come back at the current rate, even if none were left.
        let wait = level(&engines, 0)?.retry_in_ns;
        assert_eq!(
            engines.judge(wait - wait.min(2), &frame),
            OverLimit,
            "{changed}"
        );
        assert_eq!(engines.judge(wait, &frame), WithinLimits, "{changed}");
        assert_eq!(engines.maps().bucket_count()?, 1, "{changed}");
        engines.assert_same_state();
    }
    Ok(())
}

#[test]
fn what_is_owed_stays_the_same_in_tokens() -> Result<()> {
    let rates = [SLOW, FASTER, FAST, FASTEST];
    for before in rates {
        for after in rates {
            check(&limit(before), 4, &limit(after), 6)?;
        }
    }
    Ok(())
}

#[test]
fn denied_owners_stay_denied() -> Result<()> {
    check(&limit(SLOW), 10, &limit(FAST), 0)?;
    check(&limit(FAST), 10, &limit(SLOW), 0)?;
    check(&limit(SLOW), 8, &limit(rate(5, 2)), 0)
}

#[test]
fn another_burst_leaves_the_rest() -> Result<()> {
    check(&limit(SLOW), 4, &limit(rate(20, 1)), 16)?;
    check(&limit(SLOW), 4, &limit(rate(5, 1)), 1)?;
    check(&limit(FAST), 4, &limit(rate(3, 7_777)), 0)
}

#[test]
fn overrides_come_change_and_go() -> Result<()> {
    let (slow, faster, fast) = (
        limit(SLOW),
        overridden(FASTER)?,
        overridden(rate(30, 7_777))?,
    );
    check(&slow, 4, &fast, 26)?;
    check(&faster, 4, &fast, 26)?;
    check(&fast, 4, &slow, 6)?;
    check(&fast, 25, &slow, 0)
}

#[test]
fn what_counts_something_else_begins_full() -> Result<()> {
    for rate in [SLOW, FAST] {
        let (packets, connections) = (limit(rate), counting(Cost::NewConnections, rate));
        check(&packets, 4, &connections, 10)?;
        check(&connections, 10, &packets, 10)?;
    }
    Ok(())
}

/// A limit that comes back finds its buckets as it left them, plus the tokens that have come back.
#[test]
fn there_and_back() -> Result<()> {
    let (frame, [key, _]) = source()?;
    for store in [Store::Table, Store::Hash] {
        let (slow, fast) = (policy([limit(SLOW)]), policy([limit(FAST)]));
        let mut engines = Engines::with(&slow, store)?;
        for _ in 0..9 {
            engines.judge(0, &frame);
        }
        let first = bucket(&engines, &key)?;
        engines.replace(&fast)?;
        engines.judge(0, &frame);
        assert_ne!(bucket(&engines, &key)?.unit, first.unit);
        engines.replace(&slow)?;
        assert_eq!(engines.judge(0, &frame), OverLimit);
        // A slow token comes back in a second.
        assert_eq!(engines.judge(SECOND, &frame), WithinLimits);
        assert_eq!(bucket(&engines, &key)?.unit, first.unit);
        engines.assert_same_state();
    }
    Ok(())
}

/// The range has nothing left, which shows only when it is charged; the address, whose bucket was
/// charged before and exchanged too, is refunded.
#[test]
fn what_was_exchanged_is_refunded() -> Result<()> {
    let (frame, _) = source()?;
    let limits = |rate: Rate| {
        let range = Limit::of_built_in(&BUILT_IN[1], Some(Rate { burst: 5, ..rate }));
        policy([limit(rate), range])
    };
    for store in [Store::Table, Store::Hash] {
        let mut engines = Engines::with(&limits(SLOW), store)?;
        for _ in 0..5 {
            assert_eq!(engines.judge(0, &frame), WithinLimits);
        }
        engines.replace(&limits(FAST))?;
        for _ in 0..2 {
            let verdict = engines.verdict(0, &frame);
            assert_eq!((verdict.reason, verdict.denied_by()), (OverLimit, Some(1)));
            assert_eq!(level(&engines, 0)?.remaining, 5);
            assert_eq!(level(&engines, 1)?.remaining, 0);
        }
        engines.assert_same_state();
    }
    Ok(())
}
