//! Random packets under random pressure.

use anyhow::Result;
use limiter_common::{
    limit::LimitId,
    reason::Reason::{Iprep, IprepPerma, OverLimit, WithinLimits},
    sieve::{pressure_of_limit, pressure_of_sieve},
};
use limiter_policy::policy::{Limit, Match, Mode, PermaBlock, PressureOf, Sieve};
use proptest::{prelude::*, test_runner::TestRunner};

use super::{SECOND, blocking, policy, rate, sieve, total, udp};
use crate::{differential::generate, engine::Engines};

/// A packet, or a change of a pressure.
#[derive(Clone, Debug)]
enum Event {
    Packet {
        source: u32,
        port: u16,
        step: u64,
    },
    Pressure {
        of: usize,
        pressure: u32,
        lasts: u64,
    },
}

fn event() -> impl Strategy<Value = Event> {
    let source = prop_oneof![0..6_u32, 0..40_u32, 0..1_000_u32];
    let packet = (source, 53..55_u16, 0..2_000_000_u64)
        .prop_map(|(source, port, step)| Event::Packet { source, port, step });
    let pressure =
        (0..4_usize, 0..6_u32, 0..SECOND).prop_map(|(of, pressure, lasts)| Event::Pressure {
            of,
            pressure,
            lasts,
        });
    prop_oneof![100 => packet, 1 => pressure]
}

/// Random packets under random pressure, with every feature of sieves. Both engines agree on each
/// packet, and finally on the entries of every list.
#[test]
fn kernel_and_native_agree_on_any_packets() -> Result<()> {
    const EVENTS: usize = 60_000;
    let limits = [
        Limit {
            mode: Mode::Observe,
            ..total(20, "aging")
        },
        Limit {
            matching: Match {
                destination_ports: vec![53..=53],
                ..Match::default()
            },
            ..total(21, "aging")
        },
        // A limit that runs out.
        Limit {
            default: Some(rate(100)),
            ..total(22, "blocking")
        },
    ];
    let sieves = [
        Sieve {
            max_age_ns: SECOND,
            ipv6_prefix: 64,
            ..sieve("aging", 2, 4)
        },
        Sieve {
            perma_block: PermaBlock {
                limit: 20,
                threshold: 1,
                max_age_ns: SECOND / 4,
            },
            ..sieve("blocking", 4, 7)
        },
        Sieve {
            pressure: Some(PressureOf::PacketsPerSecond(1)),
            ..blocking("everywhere")
        },
    ];
    let uses = [20, 21, 22].map(|id| pressure_of_limit(LimitId(id)));
    let uses = [uses[0], uses[1], uses[2], pressure_of_sieve(2)];
    let mut engines = Engines::new(&policy(limits, sieves))?;
    let events = prop::collection::vec(event(), EVENTS);
    let mut now = 0;
    let mut reasons = Vec::new();
    for event in generate(&events, &mut TestRunner::default()) {
        match event {
            Event::Packet { source, port, step } => {
                now += step;
                reasons.push(engines.judge(now, &udp(source, port)));
            }
            Event::Pressure {
                of,
                pressure,
                lasts,
            } => engines.press(uses[of], pressure, now + lasts)?,
        }
    }
    engines.assert_same_state();
    for index in uses {
        let traffic = engines.sieve_traffic(index)?;
        assert!(traffic.scored > 0 && traffic.contended == 0, "{traffic:?}");
    }
    for number in 0..3 {
        assert!(engines.in_sieve(number).list(1).count() > 0);
    }
    for reason in [WithinLimits, OverLimit, Iprep, IprepPerma] {
        let times = reasons.iter().filter(|other| **other == reason).count();
        println!("{}: {times}", reason.name());
        assert!(times > 100, "{}: {times}", reason.name());
    }
    Ok(())
}
