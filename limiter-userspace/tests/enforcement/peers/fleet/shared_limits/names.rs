//! Limits by the names in queries: a name has one budget on all nodes, because they number names by the
//! fleet's key.

use std::fs;

use anyhow::{Result, ensure};
use testbed::Frame;

use super::{
    DRAINED, Flood,
    keys::{NEARLY_ALL, packets},
    watch::{Budget, Watch},
};
use crate::peers::{
    fleet::{Fleet, status, store, wait_until, write_secret},
    program,
    zones::query,
};

/// Limits by each kind of name, each for a separate name. Three names have an override that only they
/// match. Fresh names belong to one zone.
const LIMITS: &str = "zones: [new.test]
subscribers: {7: [192.0.2.0/24], 8: [192.0.2.0/28]}
overrides:
  - Domains: {ids: [{id: domain.test}], burst: 1250, count: 250, period: 1s}
  - Pairs: {ids: [{id: '192.0.2.77:pair.test'}], burst: 1250, count: 250, period: 1s}
  - Subscribers: {ids: [{id: '7:subscriber.test'}], burst: 1250, count: 250, period: 1s}
limits:
  Passing: {id: total, cost: packets, burst: 1000000, count: 1000000, period: 1s}
  Domains: {id: domain, cost: packets, match: {dns-name: '*.domain.test'}, scope: fleet, burst: 125, count: 25,
         period: 1s}
  Questions: {id: question, cost: packets, match: {dns-name: www.question.test}, scope: fleet, burst: 1250, count: 250,
         period: 1s}
  Pairs: {id: [ipAddress, domain], cost: packets, match: {dns-name: '*.pair.test'}, scope: fleet, burst: 125, count: 25,
         period: 1s}
  Subscribers: {id: [regId, domain], cost: packets, match: {dns-name: '*.subscriber.test'}, scope: fleet, burst: 500,
         count: 100, period: 1s}
  News: {id: zone, cost: new-names, scope: fleet, burst: 1250, count: 250, period: 1s}";

const ALL_KINDS: [Budget; 5] = [
    packets("Domains", 250),
    packets("Questions", 250),
    packets("Pairs", 250),
    packets("Subscribers", 250),
    packets("News", 250),
];

/// Enough names that none repeats before the flood ends.
const NEW_NAMES: u32 = 40_000;

fn limits() -> Result<String> {
    let list = program::public_suffixes()?;
    Ok(format!(
        "public-suffixes: {{file: '{}'}}\n{LIMITS}",
        list.display()
    ))
}

/// Sends queries for a name of each kind to a node, from one source.
fn flood(fleet: &Fleet, number: usize) -> Result<Flood> {
    let frame = Frame::new("192.0.2.77".parse()?, store::node_address(number).parse()?);
    let ask = |name: &str| frame.udp(1_000, 53, &query(1, name));
    // Each node gets queries for other names of a domain, and other fresh names.
    let [of_domain, of_pair, of_subscriber] =
        ["domain", "pair", "subscriber"].map(|domain| format!("on{number}.{domain}.test"));
    let same = [&of_domain, "www.question.test", &of_pair, &of_subscriber].map(ask);
    let same = same.into_iter().collect::<Result<Vec<_>>>()?;
    let mut frames = Vec::new();
    for name in 0..NEW_NAMES {
        frames.extend(same.iter().cloned());
        frames.push(ask(&format!("{name}.on{number}.new.test"))?);
    }
    Flood::with(fleet, number, frames)
}

/// A name of each kind gets nearly its whole limit, at one node, at another and at both, and never more.
#[test]
fn a_name_has_one_budget_on_all_nodes() -> Result<()> {
    let fleet = Fleet::with(&["a", "b"], &limits()?)?;
    let mut watch = Watch::begin(&fleet, &ALL_KINDS)?;
    let mut all_use = |what: &str| {
        println!("{what}");
        watch.used_within(&fleet, DRAINED)?;
        watch.wait_for_use(&fleet, NEARLY_ALL)
    };
    let first = flood(&fleet, 1)?;
    all_use("at one node")?;
    let second = flood(&fleet, 2)?;
    all_use("at both")?;
    first.stop()?;
    all_use("at the other")?;
    second.stop()?;
    fleet.stop()
}

const NEW: &str = "1f2e3d4c5b6a79880918273645546372819fae0dbcca9b8d7e6f50413223140f";

/// The log line of a daemon that has read its keys, and the next line if names still have numbers by
/// another key.
const READ: &str = "the fleet's keys are those in the file";
const BEFORE: &str = "limits in common number names by the key of before";

const OF_NAMES: [Budget; 2] = [packets("Domains", 250), packets("Questions", 250)];

/// Writes these keys to the file of all nodes, and waits until all have read it for the `times`th time.
fn change_keys(fleet: &Fleet, keys: &[&str], times: usize) -> Result<()> {
    let file = fleet.store.directory().join("fleet.key");
    write_secret(&file, &keys.join("\n"))?;
    for node in &fleet.nodes {
        wait_until(node, |_| {
            node.log()
                .is_ok_and(|log| log.matches(READ).count() == times)
        })?;
    }
    Ok(())
}

/// Nodes that number names with different keys have budgets of their own, which start full. Once all are
/// reloaded, they share again.
#[test]
fn a_key_changes_within_the_budgets_of_names() -> Result<()> {
    let fleet = Fleet::with(&["a", "b"], &limits()?)?;
    let old = fs::read_to_string(fleet.store.directory().join("fleet.key"))?;
    let have_one_policy = || {
        let status = status(&fleet.nodes[0])?;
        let [a, b] = ["a", "b"].map(|node| status["nodes"][node]["policy"].clone());
        ensure!(a.is_string() && b.is_string(), "{status}");
        Ok::<_, anyhow::Error>(a == b)
    };
    let mut watch = Watch::begin(&fleet, &OF_NAMES)?;
    let flood = flood(&fleet, 1)?;
    watch.used_within(&fleet, DRAINED)?;
    watch.wait_for_use(&fleet, NEARLY_ALL)?;
    for (times, keys) in (1..).zip([&[&*old, NEW][..], &[NEW, &old], &[NEW]]) {
        change_keys(&fleet, keys, times)?;
        watch.poll(&fleet)?;
    }
    // Until they are reloaded, both nodes number names with the old key.
    watch.wait_for_use(&fleet, NEARLY_ALL)?;
    ensure!(have_one_policy()?);
    for node in &fleet.nodes {
        ensure!(node.log()?.matches(BEFORE).count() == 2);
    }
    fleet.nodes[0].show(&["reload"])?;
    // Under other numbers, names have other buckets, which the other node does not use.
    watch.begin_again(&fleet)?;
    watch.used_within(&fleet, DRAINED)?;
    wait_until(&fleet.nodes[0], |_| have_one_policy().is_ok_and(|one| !one))?;
    watch.wait_for_use(&fleet, NEARLY_ALL)?;
    fleet.nodes[1].show(&["reload"])?;
    watch.wait_for_use(&fleet, NEARLY_ALL)?;
    wait_until(&fleet.nodes[0], |_| have_one_policy().is_ok_and(|one| one))?;
    flood.stop()?;
    fleet.stop()
}
