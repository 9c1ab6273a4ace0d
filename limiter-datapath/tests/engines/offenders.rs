//! Offenders: the dropped sources, the limit, and the number of drops, exact within the allowance
//! of records and the map's capacity.

use std::{
    collections::{BTreeMap, HashMap},
    net::IpAddr,
};

use anyhow::Result;
use limiter_common::{
    address::Address,
    limit::{BUILT_IN, IdFormat},
    offender::{
        Dropper, Offender, OffenderKey, RECORDS_BURST, RECORDS_PER_SECOND, RecordingCounts,
    },
    reason::{Action, Reason},
};
use limiter_datapath::kernel::{Trial, possible_cpus};
use limiter_policy::{
    config::{Buckets, Offenders},
    policy::{CompiledPolicy, Limit, Mode, Policy, Rate},
};
use testbed::Frame;

use crate::engine::{Engines, START, policy, stay_on_one_cpu};

const SECOND: u64 = 1_000_000_000;

/// A rate of `burst` packets at once, and then one an hour.
const fn burst(burst: u64) -> Rate {
    Rate {
        burst,
        count: 1,
        period_ns: 3_600 * SECOND,
    }
}

/// A limit of all sources together.
fn total() -> Limit {
    Limit {
        id_format: IdFormat::Total,
        ..Limit::of_built_in(&BUILT_IN[0], Some(burst(1)))
    }
}

fn frame(source: IpAddr) -> Result<Vec<u8>> {
    let destination: IpAddr = if source.is_ipv4() {
        [198, 51, 100, 1].into()
    } else {
        "2001:db8:ffff::1".parse()?
    };
    Frame::new(source, destination).udp(1, 2, b"x")
}

fn key(limit: &Limit, source: IpAddr) -> OffenderKey {
    OffenderKey::new(limit.id, Dropper::Budget, &Address::from(source))
}

/// The kernel's offenders.
fn kept(engines: &Engines) -> Result<HashMap<OffenderKey, Offender>> {
    Ok(engines
        .maps()
        .offenders()
        .read()?
        .offenders
        .into_iter()
        .collect())
}

#[test]
fn each_drop_is_recorded_under_its_source_and_limit() -> Result<()> {
    // A single IPv6 address reaches its own limit first; two addresses of one range reach the
    // range's limit.
    let address = Limit::of_built_in(&BUILT_IN[0], Some(burst(3)));
    let range = Limit::of_built_in(&BUILT_IN[1], Some(burst(4)));
    let (v4, one, other): (IpAddr, IpAddr, IpAddr) = (
        [192, 0, 2, 1].into(),
        "2001:db8:1::1".parse()?,
        "2001:db8:1:2::2".parse()?,
    );
    let mut engines = Engines::new(&policy([address.clone(), range.clone()]))?;
    let mut dropped = BTreeMap::new();
    for (step, source) in [v4, one, v4, v4, one, one, v4, one, v4, other, other, v4]
        .into_iter()
        .enumerate()
    {
        let now = step as u64 * 1_000_000;
        let verdict = engines.verdict(now, &frame(source)?);
        if let Some(limit_index) = verdict.refused_by() {
            dropped
                .entry((source, limit_index))
                .or_insert_with(Vec::new)
                .push(START + now);
        }
    }
    engines.assert_same_state();
    let limit_indices: Vec<_> = dropped.keys().copied().collect();
    assert_eq!(limit_indices, [(v4, 0), (one, 0), (other, 1)]);
    let limits = [&address, &range];
    let expected = dropped.iter().map(|((source, limit_index), times)| {
        let offender = Offender {
            drops: times.len() as u64,
            first_drop_ns: times[0],
            last_drop_ns: times[times.len() - 1],
        };
        (key(limits[*limit_index as usize], *source), offender)
    });
    assert_eq!(kept(&engines)?, expected.collect());
    Ok(())
}

#[test]
fn what_passes_is_not_recorded() -> Result<()> {
    let enforcing = Limit::of_built_in(&BUILT_IN[0], Some(burst(10)));
    let observing = Limit {
        mode: Mode::Observe,
        ..Limit::of_built_in(&BUILT_IN[6], Some(burst(1)))
    };
    let mut engines = Engines::new(&policy([enforcing, observing]))?;
    let frame = frame([192, 0, 2, 1].into())?;
    let mut would_drop = 0;
    for step in 0..10 {
        let verdict = engines.verdict(step, &frame);
        assert_eq!(verdict.reason, Reason::WithinLimits);
        would_drop += u32::from(verdict.would_drop != 0);
    }
    assert_eq!(would_drop, 9);
    // No limit drops malformed packets.
    let reason = engines.judge(10, &frame[..30]);
    assert_eq!(reason.action(Action::Drop), Action::Drop);
    engines.assert_same_state();
    assert_eq!(kept(&engines)?, HashMap::new());
    assert_eq!(
        engines.maps().offenders().read()?.counts,
        RecordingCounts::default()
    );
    Ok(())
}

#[test]
fn beyond_the_allowance_drops_are_skipped_and_counted() -> Result<()> {
    const MORE: u64 = 100;
    const INTERVAL: u64 = SECOND / RECORDS_PER_SECOND;
    stay_on_one_cpu()?;
    let limit = Limit::of_built_in(&BUILT_IN[0], Some(burst(1)));
    let mut engines = Engines::new(&policy([limit.clone()]))?;
    let source = [192, 0, 2, 1].into();
    let frame = frame(source)?;
    assert_eq!(engines.judge(0, &frame), Reason::WithinLimits);
    for _ in 0..RECORDS_BURST + MORE {
        assert_eq!(engines.judge(0, &frame), Reason::OverLimit);
    }
    let counts = engines.maps().offenders().read()?.counts;
    assert_eq!((counts.recorded, counts.skipped), (RECORDS_BURST, MORE));

    // The budget comes back at its rate.
    for _ in 0..10 {
        engines.judge(5 * INTERVAL, &frame);
    }
    let counts = engines.maps().offenders().read()?.counts;
    assert_eq!(
        (counts.recorded, counts.skipped),
        (RECORDS_BURST + 5, MORE + 5)
    );
    let dropped = engines.maps().limit_traffic(limit.id)?.dropped.packets;
    assert_eq!(counts.recorded + counts.skipped, dropped);
    let offender = kept(&engines)?[&key(&limit, source)];
    assert_eq!(offender.drops, counts.recorded);
    assert!(engines.maps().offenders().read()?.is_lower_bound());
    engines.assert_same_state();
    Ok(())
}

/// The time of a packet by number, within the budget of one CPU.
fn time(number: u32) -> u64 {
    START + u64::from(number) * SECOND / RECORDS_PER_SECOND
}

/// The source of a packet by number.
fn source(number: u32) -> IpAddr {
    (0x0a00_0000 | number).to_be_bytes().into()
}

/// Makes the program with a limit of all sources, which is used up at once.
fn trial(offenders: Offenders) -> Result<Trial> {
    let tables = CompiledPolicy::new(&Policy::from(vec![total()]), possible_cpus())?;
    let mut trial = Trial::new(&tables, Buckets::default(), offenders)?;
    let verdict = trial.judge(START, &frame([192, 0, 2, 77].into())?)?;
    assert_eq!(verdict.reason, Reason::WithinLimits);
    Ok(trial)
}

/// Sends packets, which are all dropped.
fn flood(trial: &mut Trial, packets: u32, source: impl Fn(u32) -> IpAddr) -> Result<()> {
    for number in 0..packets {
        let verdict = trial.judge(time(number), &frame(source(number))?)?;
        assert_eq!(verdict.reason, Reason::OverLimit, "packet {number}");
    }
    Ok(())
}

/// The map forgets sources dropped once, long ago, and keeps the source that continues.
#[test]
fn more_offenders_than_there_is_room_for() -> Result<()> {
    const PACKETS: u32 = 20_000;
    const EVERY: u32 = 100;
    let regular = IpAddr::from([192, 0, 2, 1]);
    let capacity = 1_024;
    let mut trial = trial(Offenders { capacity })?;
    flood(&mut trial, PACKETS, |number| {
        if number % EVERY == 0 {
            regular
        } else {
            source(number)
        }
    })?;
    let recorded = trial.maps().offenders().read()?;
    let remembered = recorded.offenders.len();
    assert!(remembered <= capacity as usize, "{remembered}");
    assert!(remembered > capacity as usize / 2, "{remembered}");
    let inserted = PACKETS - PACKETS / EVERY + 1;
    let expected = RecordingCounts {
        recorded: PACKETS.into(),
        inserted: inserted.into(),
        skipped: 0,
    };
    assert_eq!(recorded.counts, expected);
    assert_eq!(
        recorded.forgotten(),
        u64::from(inserted) - remembered as u64
    );
    assert!(recorded.is_lower_bound());

    let mut offenders: HashMap<_, _> = recorded.offenders.into_iter().collect();
    let expected = Offender {
        drops: (PACKETS / EVERY).into(),
        first_drop_ns: START,
        last_drop_ns: time(PACKETS - EVERY),
    };
    assert_eq!(offenders.remove(&key(&total(), regular)), Some(expected));
    assert!(offenders.values().all(|offender| offender.drops == 1));
    assert!(offenders.contains_key(&key(&total(), source(PACKETS - 1))));
    Ok(())
}

#[test]
fn every_offender_is_read() -> Result<()> {
    const PACKETS: u32 = 20_000;
    let mut trial = trial(Offenders::default())?;
    flood(&mut trial, PACKETS, source)?;
    let recorded = trial.maps().offenders().read()?;
    assert!(!recorded.is_lower_bound());
    let offenders: HashMap<_, _> = recorded.offenders.into_iter().collect();
    let expected = (0..PACKETS).map(|number| {
        let offender = Offender::new(time(number));
        (key(&total(), source(number)), offender)
    });
    assert!(offenders == expected.collect(), "{}", offenders.len());
    Ok(())
}

#[test]
fn switched_off() -> Result<()> {
    let mut trial = trial(Offenders::OFF)?;
    flood(&mut trial, 100, source)?;
    let recorded = trial.maps().offenders().read()?;
    assert_eq!(recorded.offenders, []);
    assert_eq!(recorded.counts, RecordingCounts::default());
    let dropped = trial.maps().limit_traffic(total().id)?.dropped;
    assert_eq!(dropped.packets, 100);
    Ok(())
}
