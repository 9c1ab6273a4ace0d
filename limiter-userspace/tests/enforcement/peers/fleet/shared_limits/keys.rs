//! Limits with many keys: each has one budget on all nodes.

use std::{
    net::{IpAddr, Ipv4Addr},
    ops::RangeInclusive,
};

use anyhow::{Result, ensure};
use serde_json::Value;
use testbed::Frame;

use super::{
    DRAINED, Flood,
    watch::{Budget, Watch},
};
use crate::peers::{
    fleet::{Fleet, status, store, wait_until},
    program,
    zones::query,
};

/// Limits by each kind of key and cost, each for separate packets. Four keys have an override that only they match.
/// Fresh names belong to one zone. One limit only observes: the packets that it would not drop stay within the budget.
const LIMITS: &str = "zones: [attacked.test, new.test]
subscribers: {7: [192.0.2.0/24], 8: [192.0.2.0/28]}
overrides:
  - Overridden: {ids: [{id: 192.0.2.77}], burst: 200, count: 100, period: 1s}
  - Domains: {ids: [{id: domain.test}], burst: 200, count: 100, period: 1s}
  - Pairs: {ids: [{id: '192.0.2.77:pair.test'}], burst: 200, count: 100, period: 1s}
  - Subscribers: {ids: [{id: '7:subscriber.test'}], burst: 200, count: 100, period: 1s}
limits:
  Passing: {id: total, cost: packets, burst: 1000000, count: 1000000, period: 1s}
  Overridden: {id: ipAddress, cost: packets, match: {protocol: udp, destination-port: 10}, scope: fleet, burst: 50,
         count: 25, period: 1s}
  Ranges: {id: ipv6RangeCIDR, cost: bytes, match: {protocol: udp, destination-port: 11}, scope: fleet,
         burst: 120000, count: 60000, period: 1s}
  Observed: {id: ipAddress, cost: packets, match: {protocol: udp, destination-port: 12}, scope: fleet, mode: observe,
         burst: 200, count: 100, period: 1s}
  Connects: {id: ipAddress, cost: new-connections, scope: fleet, burst: 200, count: 100, period: 1s}
  Zones: {id: zone, cost: packets, match: {dns-name: '*.attacked.test'}, scope: fleet, burst: 200, count: 100,
         period: 1s}
  Domains: {id: domain, cost: packets, match: {dns-name: '*.domain.test'}, scope: fleet, burst: 50, count: 25,
         period: 1s}
  Questions: {id: question, cost: packets, match: {dns-name: www.question.test}, scope: fleet, burst: 200, count: 100,
         period: 1s}
  Pairs: {id: [ipAddress, domain], cost: packets, match: {dns-name: '*.pair.test'}, scope: fleet, burst: 50, count: 25,
         period: 1s}
  Subscribers: {id: [regId, domain], cost: packets, match: {dns-name: '*.subscriber.test'}, scope: fleet, burst: 50,
         count: 25, period: 1s}
  News: {id: zone, cost: new-names, scope: fleet, burst: 200, count: 100, period: 1s}";

const ALL_KINDS: [Budget; 10] = [
    packets("Overridden", 100),
    Budget {
        limit: "Ranges",
        passed: "passed_bytes",
        rate: 60_000,
    },
    packets("Observed", 100),
    packets("Connects", 100),
    packets("Zones", 100),
    packets("Domains", 100),
    packets("Questions", 100),
    packets("Pairs", 100),
    packets("Subscribers", 100),
    packets("News", 100),
];

/// Nearly the whole budget, in percent. A frame of 600 bytes either fits or does not.
pub(super) const NEARLY_ALL: RangeInclusive<u64> = 92..=100;

/// Enough names that none repeats before the flood ends.
const NEW_NAMES: u32 = 20_000;

pub(super) const fn packets(limit: &'static str, rate: u64) -> Budget {
    Budget {
        limit,
        passed: "passed_packets",
        rate,
    }
}

/// Returns these limits with the list of public suffixes that domains need.
pub(super) fn with_public_suffixes(limits: &str) -> Result<String> {
    let list = program::public_suffixes()?;
    Ok(format!(
        "public-suffixes: {{file: '{}'}}\n{limits}",
        list.display()
    ))
}

fn frame(source: &str, number: usize) -> Result<Frame> {
    let source: IpAddr = source.parse()?;
    let destination = match source {
        IpAddr::V4(_) => store::node_address(number).parse()?,
        IpAddr::V6(_) => "2001:db8:ffff::1".parse()?,
    };
    Ok(Frame::new(source, destination))
}

/// Sends a node packets of one key of each kind. Each node gets packets of another host of the range, queries for other
/// names of a domain, and other fresh names.
fn flood_of_all_kinds(fleet: &Fleet, number: usize) -> Result<Flood> {
    let of_one = frame("192.0.2.77", number)?;
    let in_range = frame(&format!("2001:db8:5::{number}"), number)?;
    let ask = |name: &str| of_one.udp(1_000, 53, &query(1, name));
    let [of_domain, of_pair, of_subscriber] =
        ["domain", "pair", "subscriber"].map(|domain| format!("on{number}.{domain}.test"));
    let same = [
        of_one.udp(1_000, 10, b"")?,
        in_range.udp(1_000, 11, &[0; 538])?,
        of_one.udp(1_000, 12, b"")?,
        of_one.tcp_syn(1_000, 80, 1)?,
        ask("www.attacked.test")?,
        ask(&of_domain)?,
        ask("www.question.test")?,
        ask(&of_pair)?,
        ask(&of_subscriber)?,
    ];
    let mut frames = Vec::new();
    for name in 0..NEW_NAMES {
        frames.extend(same.iter().cloned());
        frames.push(ask(&format!("{name}.on{number}.new.test"))?);
    }
    Flood::with(fleet, number, frames)
}

fn active_keys(status: &Value, limit: &str) -> u64 {
    status["shares"][limit]["active"]
        .as_u64()
        .unwrap_or_default()
}

/// A key of each kind gets nearly its whole limit, at one node, at another and at both, and never more. Nodes number
/// names by the fleet's key, so a name is the same key on all.
#[test]
fn a_key_has_one_budget_on_all_nodes() -> Result<()> {
    let fleet = Fleet::with(&["a", "b"], &with_public_suffixes(LIMITS)?)?;
    let mut watch = Watch::begin(&fleet, &ALL_KINDS)?;
    let mut all_use = |what: &str| {
        println!("{what}");
        watch.used_within(&fleet, DRAINED)?;
        watch.wait_for_use(&fleet, NEARLY_ALL)
    };
    let first = flood_of_all_kinds(&fleet, 1)?;
    all_use("at one node")?;
    let second = flood_of_all_kinds(&fleet, 2)?;
    all_use("at both")?;
    first.stop()?;
    all_use("at the other")?;
    second.stop()?;
    for budget in ALL_KINDS {
        for node in &fleet.nodes {
            // The limit's other keys have no lease meanwhile; in the end this one has none, too.
            ensure!(active_keys(&status(node)?, budget.limit) <= 1);
            wait_until(node, |status| active_keys(status, budget.limit) == 0)?;
        }
    }
    fleet.stop()
}

/// A minimum share of a single token for each address.
const SLOW: &str = "limits:
  Passing: {id: total, cost: packets, burst: 1000000, count: 1000000, period: 1s}
  Each: {id: ipAddress, cost: packets, match: {protocol: udp, destination-port: 9}, scope: fleet, burst: 40, count: 1,
         period: 1h}";

/// More addresses than can be active at once.
const FORGED: u32 = 14_000;
const ROOM: u64 = 12_288;

/// Each forged address needs more than the minimum share. An address that comes later has the minimum share.
#[test]
fn forged_sources_find_no_more_room_than_there_is() -> Result<()> {
    let fleet = Fleet::with(&["a", "b"], SLOW)?;
    let frames = (0..FORGED).map(|number| {
        let source = Ipv4Addr::from(0x0a01_0000 + number).to_string();
        frame(&source, 1)?.udp(1_000, 9, b"")
    });
    let flood = Flood::with(&fleet, 1, frames.collect::<Result<_>>()?)?;
    let node = &fleet.nodes[0];
    let full = wait_until(node, |status| active_keys(status, "Each") >= ROOM)?;
    ensure!(active_keys(&full, "Each") == ROOM, "{full:#}");
    flood.stop()?;
    wait_until(node, |status| active_keys(status, "Each") == 0)?;
    ensure!(status(node)?["leases_error"].is_null());
    fleet.stop()
}
