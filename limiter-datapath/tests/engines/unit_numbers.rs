//! Reused unit numbers: no state is read in another unit than it was written in.

use anyhow::{Context as _, Result};
use limiter_common::{
    key::BucketKey,
    limit::{BUILT_IN, Cost},
    strategy::{Parameters, Strategy, gcra::Gcra, moving_window::Log},
    unit::{MAX_UNITS_OF_KIND, ODD_UNIT, Unit},
};
use limiter_datapath::kernel::{Trial, possible_cpus};
use limiter_policy::{
    config::{Buckets, Offenders, Store},
    policy::{CompiledPolicy, Limit, Policy, Rate, Units},
};
use testbed::Frame;

const SECOND: u64 = 1_000_000_000;
const HOUR: u64 = 3_600 * SECOND;
const NOW: u64 = 100_000 * SECOND;
const BURST: u64 = 10;

const INNOCENT: &str = "10.0.0.1";
const DEBTOR: &str = "10.0.0.2";

fn limit(strategy: Strategy, count: u64, period_ns: u64) -> Limit {
    let burst = match strategy {
        Strategy::Gcra => BURST,
        _ => count,
    };
    let rate = Rate {
        burst,
        count,
        period_ns,
    };
    Limit {
        strategy,
        ..Limit::of_built_in(&BUILT_IN[0], Some(rate))
    }
}

/// `count` units that no policy here uses; with `are_odd`, their states are not TATs in
/// nanoseconds.
fn others(count: u32, are_odd: bool) -> Vec<Unit> {
    let unit = |number: u32| {
        let number = u64::from(number);
        let gcra = if are_odd {
            Gcra::new(1, number + 3, number + 4)
        } else {
            Gcra::new(1, 1, number + 2)
        };
        Unit::new(
            &Parameters::of_gcra(gcra.expect("a rate")),
            Cost::NewConnections,
        )
    };
    (0..count).map(unit).collect()
}

/// The units after another policy that took all remaining numbers of the kind of `number`.
fn full(units: &Units, number: u32) -> Result<Units> {
    let are_odd = number >= ODD_UNIT;
    let known = units
        .iter()
        .filter(|(other, _)| (*other >= ODD_UNIT) == are_odd);
    let left = MAX_UNITS_OF_KIND - u32::try_from(known.count())?;
    Ok(units.intern(&others(left, are_odd))?.0)
}

fn key(source: &str) -> Result<BucketKey> {
    let source: std::net::IpAddr = source.parse()?;
    Ok(BucketKey::of_source(BUILT_IN[0].id, source.into(), 32))
}

/// Sends packets from a source; returns how many pass.
fn passed(trial: &mut Trial, source: &str, packets: u64, now: u64) -> Result<u64> {
    let frame = Frame::new(source.parse()?, "10.255.0.1".parse()?).udp(1, 2, b"x")?;
    let mut passed = 0;
    for _ in 0..packets {
        passed += u64::from(trial.judge(now, &frame)?.refused_by().is_none());
    }
    Ok(passed)
}

/// The stores take turns.
#[test]
fn a_number_that_is_given_again_is_not_misread() -> Result<()> {
    let cases = [
        // States in nanoseconds: an hour is one token in one unit, and millions in the other.
        (
            limit(Strategy::Gcra, 1, HOUR),
            limit(Strategy::Gcra, 1_000, SECOND),
        ),
        // States in ticks: the time itself has another value.
        (
            limit(Strategy::Gcra, 3_000_000_000, SECOND),
            limit(Strategy::Gcra, 7_777, SECOND),
        ),
        (
            limit(Strategy::FixedWindow, 10, HOUR),
            limit(Strategy::Gcra, 7_777, SECOND),
        ),
        (
            limit(Strategy::SlidingWindowCounter, 10, HOUR),
            limit(Strategy::Gcra, 7_777, SECOND),
        ),
        (
            limit(Strategy::MovingWindow, 10, HOUR),
            limit(Strategy::Gcra, 7_777, SECOND),
        ),
        (
            limit(Strategy::Gcra, 7_777, SECOND),
            limit(Strategy::FixedWindow, 10, HOUR),
        ),
        (
            limit(Strategy::Gcra, 7_777, SECOND),
            limit(Strategy::MovingWindow, 10, HOUR),
        ),
    ];
    let stores = [Store::Table, Store::Hash].into_iter().cycle();
    for ((before, after), store) in cases.into_iter().zip(stores) {
        let case = format!("{store:?}: {before:?}, then {after:?}");
        let first = CompiledPolicy::new(&Policy::from(vec![before.clone()]), possible_cpus())?;
        let buckets = Buckets {
            store,
            capacity: 4_096,
            ..Buckets::default()
        };
        let mut trial = Trial::new(&first, buckets, Offenders::OFF)?;
        assert_eq!(passed(&mut trial, INNOCENT, 1, NOW - HOUR)?, 1, "{case}");
        assert_eq!(passed(&mut trial, DEBTOR, BURST, NOW)?, BURST, "{case}");
        let number = first.rates[0].unit;

        // As after policies that took all other numbers.
        let known = full(&first.units, number)?;
        let policy = Policy::from(vec![after.clone()]);
        let second = CompiledPolicy::with_units(&policy, &known, possible_cpus())?;
        assert_eq!(second.rates[0].unit, number, "{case}");
        trial.replace(&second)?;

        for source in [INNOCENT, DEBTOR] {
            let bucket = trial.maps().bucket(&key(source)?)?;
            let state = bucket.map(|bucket| second.units.state(bucket, second.rates[0].unit, NOW));
            let level = second.rates[0].level(NOW, state, &Log::EMPTY);
            assert_eq!(level.remaining, BURST, "{source}, {case}");
        }
        assert_eq!(passed(&mut trial, INNOCENT, BURST, NOW)?, BURST, "{case}");
        // It owed at most ten tokens, and owes none now.
        assert_eq!(passed(&mut trial, DEBTOR, BURST, NOW)?, BURST, "{case}");
        let all = trial.maps().buckets().capture(&second.units, NOW)?;
        let debtors = all.count();
        assert_eq!(debtors, 2, "{case}");
    }
    Ok(())
}

/// Captured debts carry their units, and are not restored in others.
#[test]
fn debts_that_are_kept_are_not_put_back_in_other_units() -> Result<()> {
    for store in [Store::Table, Store::Hash] {
        let first = CompiledPolicy::new(
            &Policy::from(vec![limit(Strategy::Gcra, 1, HOUR)]),
            possible_cpus(),
        )?;
        let buckets = Buckets {
            store,
            capacity: 4_096,
            ..Buckets::default()
        };
        let mut trial = Trial::new(&first, buckets, Offenders::OFF)?;
        passed(&mut trial, DEBTOR, BURST, NOW)?;
        let kept = trial.maps().buckets().capture(&first.units, NOW)?;
        assert_eq!(kept.count(), 1);

        let known = full(&first.units, first.rates[0].unit)?;
        let policy = Policy::from(vec![limit(Strategy::Gcra, 1_000, SECOND)]);
        let second = CompiledPolicy::with_units(&policy, &known, possible_cpus())?;
        trial.replace(&second)?;
        let restored = trial
            .maps()
            .buckets()
            .restore(&kept, &second.units, NOW, 0)?;
        assert_eq!((restored.restored, restored.lost), (0, 1), "{store:?}");
        assert_eq!(passed(&mut trial, DEBTOR, BURST, NOW)?, BURST, "{store:?}");
    }
    Ok(())
}

/// No debt is forgotten as long as no number is reused.
#[test]
fn all_others_owe_what_they_owed() -> Result<()> {
    for store in [Store::Table, Store::Hash] {
        let first = CompiledPolicy::new(
            &Policy::from(vec![limit(Strategy::Gcra, 1, HOUR)]),
            possible_cpus(),
        )?;
        let buckets = Buckets {
            store,
            capacity: 4_096,
            ..Buckets::default()
        };
        let mut trial = Trial::new(&first, buckets, Offenders::OFF)?;
        passed(&mut trial, DEBTOR, 4, NOW)?;
        let policy = Policy::from(vec![limit(Strategy::Gcra, 7_777, SECOND)]);
        // The new unit is of the other kind: this kind has no free number, and gives none up.
        let known = full(&first.units, first.rates[0].unit)?;
        let second = CompiledPolicy::with_units(&policy, &known, possible_cpus())?;
        trial.replace(&second)?;
        trial
            .maps()
            .bucket(&key(DEBTOR)?)?
            .context("the bucket is gone")?;
        assert_eq!(
            passed(&mut trial, DEBTOR, BURST, NOW)?,
            BURST - 4,
            "{store:?}"
        );
    }
    Ok(())
}
