//! Limits with many keys: each has one budget on all nodes.

use std::{net::IpAddr, ops::RangeInclusive, thread, time::Duration};

use anyhow::{Result, ensure};
use nix::sys::signal::Signal;
use serde_json::Value;
use testbed::{Frame, PinDirectory};

use super::{
    DRAINED, Flood,
    watch::{Budget, Watch},
};
use crate::peers::{
    fleet::{ARGUMENTS, Fleet, status, store, wait_until},
    zones::query,
};

/// Limits of all kinds of keys and costs. One key's address has an override. One limit only observes:
/// the packets that it would not drop stay within the budget.
const LIMITS: &str = "zones: [attacked.test]
overrides:
  - Overridden: {ids: [{id: 192.0.2.9}], burst: 1250, count: 250, period: 1s}
limits:
  Passing: {id: total, cost: packets, burst: 1000000, count: 1000000, period: 1s}
  Each: {id: ipAddress, cost: packets, match: {protocol: udp, destination-port: 9}, scope: fleet, burst: 5000,
         count: 1000, period: 1s}
  Overridden: {id: ipAddress, cost: packets, match: {protocol: udp, destination-port: 10}, scope: fleet, burst: 125,
         count: 25, period: 1s}
  Ranges: {id: ipv6RangeCIDR, cost: bytes, match: {protocol: udp, destination-port: 11}, scope: fleet,
         burst: 625000, count: 125000, period: 1s}
  Observed: {id: ipAddress, cost: packets, match: {protocol: udp, destination-port: 12}, scope: fleet, mode: observe,
         burst: 1250, count: 250, period: 1s}
  Connects: {id: ipAddress, cost: new-connections, scope: fleet, burst: 1250, count: 250, period: 1s}
  Zones: {id: zone, cost: packets, scope: fleet, burst: 1250, count: 250, period: 1s}";

const EACH: Budget = packets("Each", 1_000);

const ALL_KINDS: [Budget; 5] = [
    packets("Overridden", 250),
    packets("Observed", 250),
    Budget {
        limit: "Ranges",
        passed: "passed_bytes",
        rate: 125_000,
    },
    packets("Connects", 250),
    packets("Zones", 250),
];

/// Nearly the whole budget, in percent. A frame of 600 bytes either fits or does not.
pub(super) const NEARLY_ALL: RangeInclusive<u64> = 92..=100;

pub(super) const fn packets(limit: &'static str, rate: u64) -> Budget {
    Budget {
        limit,
        passed: "passed_packets",
        rate,
    }
}

/// The key with packets at all nodes.
const BUSY_KEY: &str = "192.0.2.9";

fn frame(source: &str, number: usize) -> Result<Frame> {
    let source: IpAddr = source.parse()?;
    let destination = match source {
        IpAddr::V4(_) => store::node_address(number).parse()?,
        IpAddr::V6(_) => "2001:db8:ffff::1".parse()?,
    };
    Ok(Frame::new(source, destination))
}

/// Sends a node far more packets of one address than the fleet admits.
fn flood_of_one(fleet: &Fleet, number: usize) -> Result<Flood> {
    let frame = frame(BUSY_KEY, number)?.udp(1_000, 9, b"")?;
    Flood::with(fleet, number, vec![frame])
}

/// Sends a node packets of one key of each other kind.
fn flood_of_all_kinds(fleet: &Fleet, number: usize) -> Result<Flood> {
    // Each node gets packets of a different host of the range.
    let in_range = format!("2001:db8:5::{number}");
    let frames = vec![
        frame(BUSY_KEY, number)?.udp(1_000, 10, b"")?,
        frame(BUSY_KEY, number)?.udp(1_000, 12, b"")?,
        frame(&in_range, number)?.udp(1_000, 11, &[0; 538])?,
        frame(BUSY_KEY, number)?.tcp_syn(1_000, 80, 1)?,
        frame("192.0.2.10", number)?.udp(1_000, 53, &query(1, "www.attacked.test"))?,
    ];
    Flood::with(fleet, number, frames)
}

fn active_keys(status: &Value, limit: &str) -> u64 {
    status["shares"][limit]["active"]
        .as_u64()
        .unwrap_or_default()
}

/// A key of each kind gets nearly its whole limit, at one node, at another and at both, and never more.
#[test]
fn a_key_has_one_budget_on_all_nodes() -> Result<()> {
    let fleet = Fleet::with(&["a", "b"], LIMITS)?;
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

/// Daemons stall, die and restart while their programs go on, and the store stalls, is lost and restarts
/// empty: the fleet never admits more than the limit.
#[test]
fn no_fault_lets_more_pass_than_the_budget() -> Result<()> {
    let mut fleet = Fleet::with(&["a", "b"], LIMITS)?;
    // The first node's programs stay when its daemon is killed.
    let pins = PinDirectory::new()?;
    let argument = pins.argument();
    fleet.nodes[0].terminate()?;
    fleet.nodes[0].restart_with(&[&ARGUMENTS[..], &[&argument]].concat())?;
    let mut watch = Watch::begin(&fleet, &[EACH])?;
    let mut wait = |fleet: &Fleet, seconds| {
        let used = watch.used_within(fleet, Duration::from_secs(seconds));
        used.map(drop)
    };
    let first = flood_of_one(&fleet, 1)?;
    wait(&fleet, DRAINED.as_secs())?;
    // The node holds nearly everything; its leases end without it.
    fleet.nodes[0].signal(Signal::SIGSTOP)?;
    let second = flood_of_one(&fleet, 2)?;
    thread::sleep(Duration::from_secs(5));
    fleet.nodes[0].signal(Signal::SIGCONT)?;
    wait(&fleet, 3)?;
    fleet.nodes[0].kill()?;
    thread::sleep(Duration::from_secs(4));
    fleet.nodes[0].restart()?;
    wait(&fleet, 3)?;
    fleet.nodes[0].kill()?;
    fleet.nodes[0].restart()?;
    wait(&fleet, 4)?;
    fleet.store.command(&["client", "pause", "4000", "all"])?;
    wait(&fleet, 6)?;
    first.stop()?;
    wait(&fleet, 2)?;
    fleet.store.kill()?;
    let first = flood_of_one(&fleet, 1)?;
    wait(&fleet, 3)?;
    fleet.store.run()?;
    wait(&fleet, 5)?;
    second.stop()?;
    // After all these faults, one node gets nearly everything again.
    watch.wait_for_use(&fleet, 93..=100)?;
    first.stop()?;
    fleet.stop()
}
