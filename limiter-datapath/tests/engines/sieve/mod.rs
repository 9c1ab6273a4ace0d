//! Sieves: both engines score and drop the same sources, and two CPUs may use a sieve at once.

mod contention;
mod differential;
mod recorded;

use std::net::IpAddr;

use anyhow::Result;
use limiter_common::{
    limit::{BUILT_IN, Cost, IdFormat, LimitId},
    reason::Reason::{Excluded, Iprep, IprepPerma, Unlimited, WithinLimits},
    sieve::{pressure_of_limit, pressure_of_sieve},
};
use limiter_policy::policy::{
    Limit, List, Match, Mode, Percentage, PermaBlock, Policy, PressureOf, Rate, Sieve,
};
use testbed::Frame;

use crate::engine::Engines;

const SECOND: u64 = 1_000_000_000;

/// Longer than any test takes.
const LONG: u64 = 1_000_000 * SECOND;

fn sieve(name: &str, buckets: u8, size: u8) -> Sieve {
    Sieve {
        name: name.to_owned(),
        buckets,
        size,
        percentage: Percentage::default(),
        max_age_ns: 0,
        perma_block: PermaBlock::default(),
        ipv6_prefix: 128,
        pressure: None,
    }
}

/// A limit on all packets of the interface, which never denies one.
fn total(id: u16, ip_rep: &str) -> Limit {
    Limit {
        name: format!("Total{id}"),
        id: LimitId(id),
        id_format: IdFormat::Total,
        cost: Cost::Packets,
        ip_rep: Some(ip_rep.to_owned()),
        ..Limit::of_built_in(&BUILT_IN[0], Some(rate(1_000_000)))
    }
}

const fn rate(burst: u64) -> Rate {
    Rate {
        burst,
        count: burst,
        period_ns: SECOND,
    }
}

fn policy<const LIMITS: usize>(
    limits: [Limit; LIMITS],
    sieves: impl IntoIterator<Item = Sieve>,
) -> Policy {
    Policy {
        sieves: sieves.into_iter().collect(),
        ..Policy::from(Vec::from(limits))
    }
}

/// Builds a packet from a source by number; every third uses IPv6.
fn from(number: u32) -> Vec<u8> {
    udp(number, 53)
}

fn udp(number: u32, port: u16) -> Vec<u8> {
    let (source, destination): (IpAddr, IpAddr) = if number.is_multiple_of(3) {
        let low = u128::from(number);
        let source = (0x2001_0db8_u128 << 96 | (low >> 4) << 64 | low).to_be_bytes();
        (source.into(), [0x20; 16].into())
    } else {
        (
            (0x0a00_0000 | number).to_be_bytes().into(),
            [192, 0, 2, 1].into(),
        )
    };
    let frame = Frame::new(source, destination);
    frame.udp(4_000, port, b"").expect("a frame")
}

/// Puts one address in each list of a sieve with three lists: the address has the list's number.
fn one_in_each(engines: &mut Engines, index: u32) -> Result<()> {
    engines.press(index, 0, LONG)?;
    // Each hit moves an address one list down; at the fifth it goes from list 1 to list 0.
    for (source, hits) in [(3, 1), (2, 2), (1, 3), (0, 5)] {
        for _ in 0..hits {
            engines.judge(0, &from(source));
        }
    }
    let there = engines.in_sieve(0);
    for list in 0..=3 {
        assert_eq!(there.list(list).count(), 1, "list {list}");
    }
    Ok(())
}

fn blocking(name: &str) -> Sieve {
    Sieve {
        perma_block: PermaBlock {
            limit: 4,
            threshold: 1,
            max_age_ns: 0,
        },
        ..sieve(name, 3, 5)
    }
}

/// A pressure rejects the lists below it, and no others.
#[test]
fn sources_in_too_low_a_list_are_dropped() -> Result<()> {
    let index = pressure_of_limit(LimitId(20));
    // The hit counts first: it moves the addresses in lists 2 and 3 one down, and the fifth address
    // is new.
    let lists = [0, 1, 1, 2, 3];
    for (pressure, reasons) in [
        (0, [WithinLimits; 5]),
        (
            1,
            [
                IprepPerma,
                WithinLimits,
                WithinLimits,
                WithinLimits,
                WithinLimits,
            ],
        ),
        (2, [IprepPerma, Iprep, Iprep, WithinLimits, WithinLimits]),
        (3, [IprepPerma, Iprep, Iprep, Iprep, WithinLimits]),
    ] {
        let mut engines = Engines::new(&policy([total(20, "main")], [blocking("main")]))?;
        one_in_each(&mut engines, index)?;
        engines.press(index, pressure, LONG)?;
        for ((source, list), reason) in (0..).zip(lists).zip(reasons) {
            let before = engines.sieve_traffic(index)?;
            let verdict = engines.verdict(0, &from(source));
            assert_eq!(verdict.reason, reason, "{source} under {pressure}");
            let is_dropped = matches!(reason, Iprep | IprepPerma);
            assert_eq!(verdict.refused_by(), is_dropped.then_some(0));
            // Each number of hits occurs only once.
            let hits = [6, 4, 3, 2, 1][source as usize];
            let there = engines.in_sieve(0);
            assert!(there.list(list).any(|one| one.count == hits), "{source}");
            let after = engines.sieve_traffic(index)?;
            assert_eq!(after.arrived.packets, before.arrived.packets + 1);
            assert_eq!((after.scored, after.contended), (before.scored + 1, 0));
            let dropped = |packets, by| packets + u64::from(reason == by);
            let (iprep, perma) = (before.iprep.packets, before.iprep_perma.packets);
            assert_eq!(after.iprep.packets, dropped(iprep, Iprep));
            assert_eq!(after.iprep_perma.packets, dropped(perma, IprepPerma));
        }
        engines.assert_same_state();
    }
    Ok(())
}

#[test]
fn without_pressure_nobody_is_scored_but_arrivals_are_counted() -> Result<()> {
    let index = pressure_of_limit(LimitId(20));
    let mut engines = Engines::new(&policy([total(20, "main")], [sieve("main", 3, 5)]))?;
    assert_eq!(engines.judge(0, &from(1)), WithinLimits);
    // The daemon's pressure holds until its time, and no longer.
    engines.press(index, 3, SECOND)?;
    assert_eq!(engines.judge(SECOND - 1, &from(1)), WithinLimits);
    assert_eq!(engines.judge(SECOND - 1, &from(1)), Iprep);
    assert_eq!(engines.judge(SECOND, &from(1)), WithinLimits);
    let traffic = engines.sieve_traffic(index)?;
    assert_eq!((traffic.arrived.packets, traffic.scored), (4, 2));
    assert_eq!(traffic.arrived.bytes, 4 * from(1).len() as u64);
    let listed = engines.in_sieve(0);
    assert_eq!(listed.list(2).map(|one| one.count).collect::<Vec<_>>(), [2]);
    Ok(())
}

/// Two limits share a sieve, each with its own pressure. A packet of both is scored once.
#[test]
fn uses_of_one_sieve_score_a_packet_once_and_decide_each() -> Result<()> {
    let dns = Limit {
        matching: Match {
            destination_ports: vec![53..=53],
            ..Match::default()
        },
        ..total(21, "main")
    };
    let policy = policy([total(20, "main"), dns], [sieve("main", 3, 5)]);
    let mut engines = Engines::new(&policy)?;
    let (all, only_dns) = (
        pressure_of_limit(LimitId(20)),
        pressure_of_limit(LimitId(21)),
    );
    engines.press(all, 0, LONG)?;
    engines.press(only_dns, 3, LONG)?;
    engines.judge(0, &udp(1, 53));
    let verdict = engines.verdict(0, &udp(1, 53));
    assert_eq!((verdict.reason, verdict.refused_by()), (Iprep, Some(1)));
    assert_eq!(engines.judge(0, &udp(1, 54)), WithinLimits);
    let listed = engines.in_sieve(0);
    assert_eq!(listed.list(1).map(|one| one.count).collect::<Vec<_>>(), [3]);
    let (all, only_dns) = (
        engines.sieve_traffic(all)?,
        engines.sieve_traffic(only_dns)?,
    );
    assert_eq!(
        (all.arrived.packets, all.scored, all.iprep.packets),
        (3, 3, 0)
    );
    assert_eq!((only_dns.arrived.packets, only_dns.iprep.packets), (2, 1));
    engines.assert_same_state();
    Ok(())
}

#[test]
fn a_limit_that_observes_only_tells_what_it_would_drop() -> Result<()> {
    let observing = Limit {
        mode: Mode::Observe,
        ..total(20, "main")
    };
    let mut engines = Engines::new(&policy([observing], [sieve("main", 3, 5)]))?;
    let index = pressure_of_limit(LimitId(20));
    engines.press(index, 3, LONG)?;
    engines.judge(0, &from(1));
    let verdict = engines.verdict(0, &from(1));
    assert_eq!((verdict.reason, verdict.would_drop), (WithinLimits, 1));
    assert_eq!(engines.sieve_traffic(index)?.iprep.packets, 0);
    engines.assert_same_state();
    Ok(())
}

/// A sieve of the whole interface also scores packets that no limit counts.
#[test]
fn a_sieve_of_the_whole_interface_scores_what_no_limit_counts() -> Result<()> {
    let everywhere = Sieve {
        pressure: Some(PressureOf::PacketsPerSecond(1_000)),
        ..sieve("main", 3, 5)
    };
    let mut engines = Engines::new(&policy([], [everywhere]))?;
    let index = pressure_of_sieve(0);
    engines.press(index, 2, LONG)?;
    for reason in [Unlimited, Unlimited, Iprep] {
        let verdict = engines.verdict(0, &from(1));
        assert_eq!((verdict.reason, verdict.refused_by()), (reason, None));
    }
    assert_eq!(engines.sieve_traffic(index)?.iprep.packets, 1);
    engines.assert_same_state();
    Ok(())
}

/// It does not see packets from an excluded address either.
#[test]
fn no_sieve_scores_an_excluded_source() -> Result<()> {
    let everywhere = Sieve {
        pressure: Some(PressureOf::PacketsPerSecond(1_000)),
        ..sieve("main", 3, 5)
    };
    let everybody = vec!["0.0.0.0/0".parse()?, "::/0".parse()?];
    let mut engines = Engines::new(&Policy {
        lists: vec![List::new("everybody".to_owned(), &everybody)],
        exclude: vec!["everybody".to_owned()],
        ..policy([total(20, "main")], [everywhere])
    })?;
    for index in [pressure_of_sieve(0), pressure_of_limit(LimitId(20))] {
        engines.press(index, 3, LONG)?;
    }
    for _ in 0..10 {
        assert_eq!(engines.verdict(0, &from(1)).reason, Excluded);
    }
    assert_eq!(engines.sieve_traffic(pressure_of_sieve(0))?.scored, 0);
    engines.assert_same_state();
    Ok(())
}

/// One limit's arrivals are measured for a sieve that another uses.
#[test]
fn a_use_without_a_sieve_only_counts() -> Result<()> {
    let measured = Limit {
        ip_rep: None,
        ..total(20, "")
    };
    let main = Sieve {
        pressure: Some(PressureOf::Limit(measured.name.clone())),
        ..sieve("main", 3, 5)
    };
    let mut engines = Engines::new(&policy([measured, total(21, "main")], [main]))?;
    let (measured, used) = (
        pressure_of_limit(LimitId(20)),
        pressure_of_limit(LimitId(21)),
    );
    // The daemon never sets this pressure; it would have no effect.
    engines.press(measured, 3, LONG)?;
    engines.judge(0, &from(1));
    engines.press(used, 3, LONG)?;
    engines.judge(0, &from(1));
    let (measured, used) = (
        engines.sieve_traffic(measured)?,
        engines.sieve_traffic(used)?,
    );
    assert_eq!((measured.arrived.packets, measured.scored), (2, 0));
    assert_eq!((used.arrived.packets, used.scored), (2, 1));
    Ok(())
}
