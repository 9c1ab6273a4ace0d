//! Checks the counters and thresholds of each use's pressure.

use std::convert::Infallible;

use limiter_common::{counters::Traffic, sieve::SieveTraffic};
use limiter_policy::testing;

use super::*;

const MS: u64 = 1_000_000;

/// All sources' packets, all sources' bytes on a port, and each address's packets.
const LIMITS: &str = "
limits:
  All: {id: total, cost: packets, burst: 1, count: 11000, period: 10s, ip-rep: own}
  Web: {id: total, cost: bytes, burst: 1514, count: 22000, period: 1s, ip-rep: packets,
        match: {protocol: tcp}}
  PacketsPerIPAddress: {burst: 1, count: 1, period: 1s, ip-rep: other}
ip-rep:
  - {name: own, size: 15}
  - {name: other, size: 15, pressure: {limit: Web}}
  - {name: packets, size: 15, pressure: {packets-per-second: 1100}}
  - {name: everything, size: 15, pressure: {packets-per-second: 110}}
";

/// Returns the pressures, by use, if so many packets and bytes arrive in 50 ms at the counters of each index.
fn pressures(yaml: &str, arriving: &[(u32, u64, u64)]) -> Vec<(u32, Option<u8>)> {
    with_open(yaml, arriving, 0)
}

/// The same while so many connections are open.
fn with_open(yaml: &str, arriving: &[(u32, u64, u64)], open: u64) -> Vec<(u32, Option<u8>)> {
    let policy = testing::policy(yaml);
    let mut gauge = Gauge::new(&policy);
    let mut now = 5_000 * MS;
    let mut measured = Vec::new();
    for round in 0..6 {
        let read = |index| {
            let arrived = arriving.iter().find(|(counters, ..)| *counters == index);
            let &(_, packets, bytes) = arrived.unwrap_or(&(0, 0, 0));
            Ok::<_, Infallible>(SieveTraffic {
                arrived: Traffic {
                    packets: round * packets,
                    bytes: round * bytes,
                },
                ..SieveTraffic::default()
            })
        };
        measured = gauge.measure(now, read, |_| Ok(open)).unwrap();
        now += 50 * MS;
    }
    let measured = measured.into_iter();
    measured.map(|one| (one.index, one.pressure)).collect()
}

#[test]
fn each_use_has_its_pressure_against_its_limit() {
    // All is 32, Web 33, PacketsPerIPAddress 1; on the whole interface the fourth sieve.
    let everywhere = 256 + 3;
    assert_eq!(
        pressures(LIMITS, &[]),
        [(1, None), (32, None), (33, None), (everywhere, None)]
    );
    // 1000 packets a second of 1100 are 90.9 %, so list 0 is rejected; the bytes do not matter.
    assert_eq!(
        pressures(LIMITS, &[(32, 50, 1_000_000)]),
        [(1, None), (32, Some(1)), (33, None), (everywhere, None)]
    );
    // 21 000 bytes of 22 000 a second are 95.45 %: 6 of 11 steps, exactly. The limit Web counts
    // them, and they press on sources of PacketsPerIPAddress; on Web's own use packets do.
    assert_eq!(
        pressures(LIMITS, &[(33, 50, 1050), (1, 1_000_000, 1_000_000)]),
        [(1, Some(6)), (32, None), (33, Some(1)), (everywhere, None)]
    );
    // 6 packets in 50 ms are 120 a second of 110.
    assert_eq!(
        pressures(LIMITS, &[(everywhere, 6, 0)]).last(),
        Some(&(everywhere, Some(10)))
    );
}

/// Arriving packets make no difference.
#[test]
fn open_connections_press_as_in_traffic_server() {
    let yaml = "
limits:
  Web: {id: total, cost: connections, limit: 1100, match: {protocol: tcp}, ip-rep: own}
ip-rep: [{name: own, size: 15}]
";
    let arriving = [(32, 1_000_000, 1_000_000)];
    for (open, pressure) in [(0, None), (989, Some(0)), (1000, Some(1)), (1100, Some(10))] {
        assert_eq!(with_open(yaml, &arriving, open), [(32, pressure)], "{open}");
    }
}

#[test]
fn a_group_presses_by_the_count_that_it_shares() {
    let policy = testing::policy(
        "
limits:
  All: {id: total, cost: connections, limit: 2000, group: front}
  Web: {id: total, cost: connections, limit: 1100, group: front, match: {protocol: tcp}, ip-rep: own}
ip-rep: [{name: own, size: 15}]
",
    );
    let [first, second] = [&policy.limits[0], &policy.limits[1]];
    let mut gauge = Gauge::new(&policy);
    let open = |limit| Ok::<_, Infallible>(if limit == first.id { 1000 } else { 0 });
    let measured = gauge.measure(5, |_| Ok(SieveTraffic::default()), open);
    let pressures: Vec<_> = measured.unwrap().iter().map(|one| one.pressure).collect();
    assert_eq!(pressures, [Some(1)], "{} and {}", first.name, second.name);
}

#[test]
fn a_limit_that_is_off_measures_nothing() {
    let yaml = LIMITS.replace("cost: bytes,", "cost: bytes, mode: off,");
    assert_eq!(
        pressures(&yaml, &[(33, 1_000_000, 1_000_000_000)]),
        [(1, None), (32, None), (259, None)]
    );
}

#[test]
fn without_a_use_there_is_nothing_to_measure() {
    let yaml = "limits: {PacketsPerIPAddress: {burst: 1, count: 1, period: 1s}}";
    assert!(Gauge::new(&testing::policy(yaml)).is_idle());
}
