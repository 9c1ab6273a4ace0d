//! A limit with a changed rate: the debts of its buckets stay the same, in tokens.

use std::net::IpAddr;

use anyhow::{Context as _, Result};
use limiter_common::{
    bucket::Bucket,
    decide::account,
    key::BucketKey,
    limit::{BUILT_IN, Cost, FIRST_CUSTOM_ID, LimitId},
    reason::Reason::{OverLimit, WithinLimits},
    strategy::{Level, moving_window::Log},
};
use limiter_policy::{
    config::Store,
    policy::{Limit, Override, OverrideId, Rate},
};
use testbed::Frame;

use crate::engine::{Engines, START, apart, classified, policy, stay_on_one_cpu};

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

const SOURCE: &str = "2001:db8::1";

/// A segment that begins a connection to a port.
fn syn(port: u16) -> Result<Vec<u8>> {
    Frame::new(SOURCE.parse()?, "2001:db8:f::1".parse()?).tcp_syn(1, port, 0)
}

/// The source's bucket by a limit that counts prefixes of that length.
fn key(limit: LimitId, length: u8) -> Result<BucketKey> {
    let source: IpAddr = SOURCE.parse()?;
    Ok(BucketKey::of_source(limit, source.into(), length))
}

fn bucket(engines: &Engines, key: &BucketKey) -> Result<Bucket> {
    engines.maps().bucket(key)?.context("a bucket")
}

/// The level that `explain` would report at [`START`] for the limit at an index.
fn level(engines: &Engines, limit_index: u32, frame: &[u8], key: &BucketKey) -> Result<Level> {
    let tables = engines.tables();
    let packet = classified(tables, frame).context("a good packet")?;
    let parameters = account(tables, &packet, limit_index)
        .context("a limit")?
        .parameters;
    let state = (tables.units).state(bucket(engines, key)?, parameters.unit, START);
    Ok(parameters.level(START, Some(state), &Log::EMPTY))
}

/// A limit, the number of its spent tokens, its successor, and the exact number of packets that pass
/// then.
type Change = (Limit, u64, Limit, u64);

/// The index of a limit among others, its packets, and the source's bucket.
type Case = (u32, Vec<u8>, BucketKey);

fn cases(count: usize) -> Result<Vec<Case>> {
    let cases = (0..).zip(FIRST_CUSTOM_ID..).take(count);
    cases
        .map(|(limit_index, number)| Ok((limit_index, syn(number)?, key(LimitId(number), 128)?)))
        .collect()
}

/// All limits change at once.
fn check(changes: &[Change]) -> Result<()> {
    stay_on_one_cpu()?;
    let cases = cases(changes.len())?;
    let each = || cases.iter().zip(changes);
    for store in [Store::Table, Store::Hash] {
        let before = changes.iter().map(|(before, ..)| before.clone());
        let mut engines = Engines::with(&apart(before), store)?;
        let mut written = Vec::new();
        for ((_, frame, key), (_, spent, ..)) in each() {
            for _ in 0..*spent {
                assert_eq!(engines.judge(0, frame), WithinLimits);
            }
            written.push(bucket(&engines, key)?);
        }
        engines.replace(&apart(changes.iter().map(|(_, _, after, _)| after.clone())))?;
        for (((limit_index, frame, key), change), written) in each().zip(written) {
            let (before, spent, after, left) = change;
            let case = format!("{store:?}: {before:?}, {spent} spent, then {after:?}");
            let level = |engines: &Engines| level(engines, *limit_index, frame, key);
            assert_eq!(level(&engines)?.remaining, *left, "{case}");
            let now = bucket(&engines, key)?;
            assert_eq!(now, written, "reading exchanges nothing");
            for number in 0..*left {
                assert_eq!(engines.judge(0, frame), WithinLimits, "{number} {case}");
                assert_eq!(level(&engines)?.remaining, left - number - 1);
            }
            assert_eq!(engines.judge(0, frame), OverLimit, "{case}");
        }
        engines.assert_same_state();
        // Their tokens come back at the current rate, even if none were left.
        for ((limit_index, frame, key), (before, _, after, _)) in each() {
            let case = format!("{store:?}: {before:?}, then {after:?}");
            let wait = level(&engines, *limit_index, frame, key)?.retry_in_ns;
            let early = engines.judge(wait - wait.min(2), frame);
            assert_eq!(early, OverLimit, "{case}");
            assert_eq!(engines.judge(wait, frame), WithinLimits, "{case}");
        }
        assert_eq!(engines.maps().bucket_count()?, changes.len());
        engines.assert_same_state();
    }
    Ok(())
}

#[test]
fn what_is_owed_stays_the_same_in_tokens() -> Result<()> {
    let rates = [SLOW, FASTER, FAST, FASTEST];
    let pairs = rates
        .into_iter()
        .flat_map(|one| rates.map(|other| (one, other)));
    let changes = pairs.map(|(before, after)| (limit(before), 4, limit(after), 6));
    check(&changes.collect::<Vec<_>>())
}

#[test]
fn denied_keys_stay_denied() -> Result<()> {
    check(&[
        (limit(SLOW), 10, limit(FAST), 0),
        (limit(FAST), 10, limit(SLOW), 0),
        (limit(SLOW), 8, limit(rate(5, 2)), 0),
    ])
}

#[test]
fn another_burst_leaves_the_rest() -> Result<()> {
    check(&[
        (limit(SLOW), 4, limit(rate(20, 1)), 16),
        (limit(SLOW), 4, limit(rate(5, 1)), 1),
        (limit(FAST), 4, limit(rate(3, 7_777)), 0),
    ])
}

#[test]
fn overrides_come_change_and_go() -> Result<()> {
    let (slow, faster, fast) = (
        limit(SLOW),
        overridden(FASTER)?,
        overridden(rate(30, 7_777))?,
    );
    check(&[
        (slow.clone(), 4, fast.clone(), 26),
        (faster, 4, fast.clone(), 26),
        (fast.clone(), 4, slow.clone(), 6),
        (fast, 25, slow, 0),
    ])
}

#[test]
fn what_counts_something_else_begins_full() -> Result<()> {
    let changes = [SLOW, FAST].into_iter().flat_map(|rate| {
        let (packets, connections) = (limit(rate), counting(Cost::NewConnections, rate));
        [
            (packets.clone(), 4, connections.clone(), 10),
            (connections, 10, packets, 10),
        ]
    });
    check(&changes.collect::<Vec<_>>())
}

/// A limit that comes back finds its buckets as it left them, plus the tokens that have come back.
#[test]
fn there_and_back() -> Result<()> {
    let (frame, key) = (syn(2)?, key(BUILT_IN[0].id, 128)?);
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

/// The range has no tokens left, which shows only when it is charged. The address's bucket was charged
/// and exchanged before, and gets its tokens back.
#[test]
fn what_was_exchanged_is_refunded() -> Result<()> {
    let frame = syn(2)?;
    let (of_address, of_range) = (key(BUILT_IN[0].id, 128)?, key(BUILT_IN[1].id, 48)?);
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
            assert_eq!((verdict.reason, verdict.refused_by()), (OverLimit, Some(1)));
            assert_eq!(level(&engines, 0, &frame, &of_address)?.remaining, 5);
            assert_eq!(level(&engines, 1, &frame, &of_range)?.remaining, 0);
        }
        engines.assert_same_state();
    }
    Ok(())
}
