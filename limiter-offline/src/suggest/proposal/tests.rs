use std::f64::consts::TAU;

use fastrand::Rng;
use limiter_capture::{CapturedFrame, Packet};
use limiter_common::{
    address::Address,
    packet::{Facts, Transport},
};
use limiter_policy::policy::Match;

use super::*;
use crate::suggest::{Observer, PacketDirection, Sink as _, warnings};

const MS: i64 = 1_000_000;

const INCOMING: PacketDirection = PacketDirection {
    incoming: true,
    outgoing: false,
};

/// A packet to UDP port 53: its time in nanoseconds, its source, and its frame's length.
type Query = (i64, Address, u64);

fn observe(queries: &[Query]) -> Observation {
    let mut observer = Observer::new(Some(vec![Service::udp(53)]), 1500);
    for (at_ns, source, length) in queries {
        let facts = Facts {
            source: *source,
            length: u32::try_from(*length).unwrap(),
            destination_port: 53,
            transport: Transport::Ports,
            protocol: Match::UDP,
            ..Facts::NONE
        };
        let packet = Packet {
            time_ns: i128::from(*at_ns),
            frame: CapturedFrame {
                data: &[],
                length: 0,
            },
        };
        let Ok(()) = observer.take(INCOMING, &packet, Some(&facts));
    }
    observer.finish()
}

fn suggest(queries: &[Query], margin: Margin) -> Suggestion {
    Suggestion::new(&observe(queries), &[Cost::Packets, Cost::Bytes], margin)
}

/// Without head room, a limit is as close to the observed packets as the drops allow.
fn close(most_dropped: f64) -> Margin {
    Margin {
        most_dropped,
        headroom: 1.0,
    }
}

fn source(number: u32) -> Address {
    Address::v4([
        198,
        51,
        u8::try_from(number / 4).unwrap(),
        u8::try_from(number % 4).unwrap(),
    ])
}

/// A pattern of sending.
#[derive(Clone, Copy, Debug)]
enum Habit {
    /// Single packets; all sources have the same rate.
    Alike,
    /// Single packets; the sources' rates differ up to fiftyfold.
    Unlike,
    /// In bursts of some ten packets.
    Bursts,
    /// In bursts, few of them large: the sizes have a Pareto tail with exponent 2.2, up to 60 packets.
    LongTail,
    /// Single packets, at a rate that rises and falls.
    Waves,
}

const HABITS: [Habit; 5] = [
    Habit::Alike,
    Habit::Unlike,
    Habit::Bursts,
    Habit::LongTail,
    Habit::Waves,
];

/// Returns the time until the next event of a Poisson process, in seconds.
fn wait(random: &mut Rng, per_second: f64) -> f64 {
    -(1.0 - random.f64()).ln() / per_second
}

/// Makes the packets of 160 sources over two minutes.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "small numbers"
)]
fn traffic(habit: Habit, seed: u64) -> Vec<Query> {
    const SECONDS: f64 = 120.0;
    let mut random = Rng::with_seed(seed);
    let mut queries = Vec::new();
    for number in 0..160 {
        let rate = match habit {
            Habit::Unlike => 0.1 * 50_f64.powf(random.f64()),
            Habit::Alike | Habit::Waves => 2.0,
            Habit::Bursts => 0.2,
            Habit::LongTail => 0.7,
        };
        let mut at = wait(&mut random, rate);
        while at < SECONDS {
            let packets = match habit {
                Habit::Alike | Habit::Unlike => 1,
                Habit::Waves => u32::from(random.f64() * 2.0 < 1.0 + (at * TAU / 5.0).sin()),
                Habit::Bursts => random.u32(1..20),
                Habit::LongTail => (random.f64().powf(-1.0 / 2.2) * 3.0).min(60.0) as u32,
            };
            for packet in 0..packets {
                let at_ns = (at * 1e9) as i64 + i64::from(packet) * MS;
                queries.push((at_ns, source(number), random.u64(60..120)));
            }
            at += wait(&mut random, rate);
        }
    }
    queries.sort_unstable_by_key(|(at_ns, ..)| *at_ns);
    queries
}

/// An estimate from one half holds for the other within a factor of two.
#[test]
fn one_half_predicts_the_other() {
    let mut tested = 0;
    for seed in 0..2 {
        for habit in HABITS {
            let suggestion = suggest(&traffic(habit, seed), close(0.05));
            for limit in &suggestion.services[0].limits {
                let halves = limit.holdout.expect("both halves have enough packets");
                let (estimate, truth) = (halves.learned, halves.tested);
                let about = format!("{habit:?} {seed} {}: {halves:?}", limit.name);
                assert!(estimate.fraction() <= 0.05, "{about}");
                // A few packets say little about a fraction. Where the least burst of bytes decides, drops are
                // so few that they change with the mean.
                if estimate.dropped < 20 || estimate.fraction() < 0.01 {
                    assert!(truth.fraction() < 0.02, "{about}");
                    continue;
                }
                tested += 1;
                let factor = truth.fraction() / estimate.fraction();
                assert!((0.5..=2.0).contains(&factor), "{factor:.2}: {about}");
            }
        }
    }
    assert!(tested > 40, "{tested}");
}

/// With head room, almost no packet is dropped in either half.
#[test]
fn with_head_room_next_to_nothing_is_dropped() {
    let margin = Margin {
        most_dropped: 0.001,
        headroom: 2.0,
    };
    for habit in HABITS {
        let suggestion = suggest(&traffic(habit, 0), margin);
        for limit in &suggestion.services[0].limits {
            let halves = limit.holdout.expect("both halves have enough packets");
            let about = format!("{habit:?} {}: {limit:?}", limit.name);
            assert!(limit.drops.fraction() <= 0.001, "{about}");
            assert!(halves.tested.fraction() <= 0.002, "{about}");
        }
    }
}

/// The rate is no higher than the busiest need, and a tenth of it would not do.
#[test]
fn a_limit_is_no_wider_than_needed() {
    let suggestion = suggest(&traffic(Habit::Alike, 1), close(0.001));
    let limit = &suggestion.services[0].limits[0];
    assert_eq!(limit.name, "Udp53PacketsPerIPAddress");
    // Two a second, and at most 38 in ten seconds.
    assert!((25..=45).contains(&limit.terms.count), "{limit:?}");
    assert!((4..=20).contains(&limit.terms.burst), "{limit:?}");
    assert_eq!(limit.terms.period_ns, 10_000_000_000);
    assert_eq!(limit.drops.keys, 160);
}

/// Four sources share each range: a limit of ranges needs less than four times as much, and one of all sources
/// together less than 160 times.
#[test]
fn each_kind_of_key_has_a_limit() {
    let suggestion = suggest(&traffic(Habit::Unlike, 7), close(0.01));
    let limits = &suggestion.services[0].limits;
    let names: Vec<_> = limits.iter().map(|limit| limit.name.as_str()).collect();
    assert_eq!(
        names,
        [
            "Udp53PacketsPerIPAddress",
            "Udp53PacketsPerIPv4Range",
            "Udp53PacketsTotal",
            "Udp53BytesPerIPAddress",
            "Udp53BytesPerIPv4Range",
            "Udp53BytesTotal",
        ]
    );
    let keys: Vec<_> = limits.iter().map(|limit| limit.drops.keys).collect();
    assert_eq!(keys, [160, 40, 1, 160, 40, 1]);
    let bytes = &limits[3];
    assert!(bytes.terms.burst >= 1514, "{bytes:?}");
}

/// Sources of IPv6 are addresses, /64s, and /48s if several /64s share one.
#[test]
fn ranges_of_ipv6() {
    let address = |range: u8, network: u8, host: u8| {
        Address::v6(
            [0x20, 1, 0xd, 0xb8, 0, range, 0, network],
            [0, 0, 0, 0, 0, 0, 0, host],
        )
    };
    let names = |networks: u8| -> Vec<String> {
        let queries: Vec<_> = (0..400_u16)
            .map(|n| {
                let [_, low] = n.to_be_bytes();
                (
                    i64::from(n) * MS,
                    address(low % 5, low % networks, low % 3),
                    80,
                )
            })
            .collect();
        let suggestion = Suggestion::new(&observe(&queries), &[Cost::Packets], close(0.01));
        let limits = suggestion.services[0].limits.iter();
        limits.map(|limit| limit.name.clone()).collect()
    };
    let [address, network, range, total] = [
        "Udp53PacketsPerIPAddress",
        "Udp53PacketsPerIPv6Range64",
        "Udp53PacketsPerIPv6Range48",
        "Udp53PacketsTotal",
    ];
    assert_eq!(names(1), [address, network, total]);
    assert_eq!(names(4), [address, network, range, total]);
}

#[test]
fn too_little_makes_no_limit() {
    let few: Vec<_> = (0..99).map(|n| (n * MS, source(1), 80)).collect();
    assert!(suggest(&few, close(0.01)).is_empty());
    assert!(suggest(&[], close(0.01)).is_empty());
}

/// Warnings of a flood, a short time and too few sources.
#[test]
fn what_speaks_against_it() {
    let warned = |queries: &[Query]| {
        let observed = observe(queries);
        warnings(
            &observed,
            &Suggestion::new(&observed, &[Cost::Packets], close(0.01)),
        )
    };
    let reported = |queries: &[Query], expected: &str| {
        let warnings = warned(queries);
        assert!(
            warnings.iter().any(|warning| warning.contains(expected)),
            "{warnings:?}"
        );
    };
    let mut queries = traffic(Habit::Alike, 3);
    let calm = warned(&queries);
    assert_eq!(calm.len(), 1, "{calm:?}");
    assert!(
        calm[0].contains("which ports it serves is a guess"),
        "{calm:?}"
    );
    reported(&queries[..5_000], "only 15");
    let few: Vec<_> = queries
        .iter()
        .copied()
        .filter(|(_, of, _)| *of == source(5))
        .collect();
    reported(&few, "only 1 sources");
    let sixty_seconds = 60_000 * MS;
    queries.extend((0..50_000_u32).map(|n| {
        let [a, b, c, _] = (n << 12).to_be_bytes();
        (
            sixty_seconds + i64::from(n) * 10_000,
            Address::v4([100 + a, b, c, 7]),
            80,
        )
    }));
    queries.sort_unstable_by_key(|(at_ns, ..)| *at_ns);
    reported(&queries, "packets came in second 60");
    reported(&queries, "sources sent one packet each");
}

/// Times that go back, or are extreme, cause no failure.
#[test]
fn strange_times() {
    let mut random = Rng::with_seed(1);
    let mut queries: Vec<Query> = (0..20_000)
        .map(|_| {
            (
                random.i64(-600_000..600_000) * MS,
                source(random.u32(0..50)),
                80,
            )
        })
        .collect();
    queries.extend([i64::MAX, i64::MIN, 1 << 54, -1 << 54].map(|at_ns| (at_ns, source(1), 80)));
    let suggestion = suggest(&queries, close(0.01));
    assert_eq!(suggestion.ways.out_of_time, 2);
    for limit in &suggestion.services[0].limits {
        assert!(limit.drops.fraction() <= 0.01, "{limit:?}");
    }
}
