//! The fleet's key changes while daemons run: bans go on, and so do the budgets of names, which nodes number by the key.

use std::{thread, time::Duration};

use anyhow::{Result, bail, ensure};
use testbed::{Frame, Limiter};

use super::{
    DRAINED, Flood,
    keys::{NEARLY_ALL, packets, with_public_suffixes},
    watch::{Budget, Watch},
};
use crate::peers::{
    fleet::{
        Fleet, KEYS_READ, NEW_KEY, configuration, start, status,
        store::{self, KEY, Store},
        wait_for, wait_until, write_secret,
    },
    zones::query,
};

const LIMITS: &str = "limits:
  Passing: {id: total, cost: packets, burst: 1000000, count: 1000000, period: 1s}
  Domains: {id: domain, cost: packets, match: {dns-name: '*.domain.test'}, scope: fleet, burst: 500, count: 250,
         period: 1s}
  Questions: {id: question, cost: packets, match: {dns-name: www.question.test}, scope: fleet, burst: 500, count: 250,
         period: 1s}";

const BUDGETS: [Budget; 2] = [packets("Domains", 250), packets("Questions", 250)];

/// The next line in the log if names still have numbers by another key.
const BEFORE: &str = "limits in common number names by the key of before";

/// Sends queries for both names to a node.
fn flood(fleet: &Fleet, number: usize) -> Result<Flood> {
    let frame = Frame::new("192.0.2.77".parse()?, store::node_address(number).parse()?);
    let ask = |name| frame.udp(1_000, 53, &query(1, name));
    let frames = vec![ask("www.domain.test")?, ask("www.question.test")?];
    Flood::with(fleet, number, frames)
}

/// Writes these keys to the file of all nodes, and bans prefixes until all nodes have read it for the `times`th time: all
/// nodes understand each other at each moment. Returns the last byte of the next prefix to ban.
fn change_keys(fleet: &Fleet, keys: &[&str], times: usize, mut next: u8) -> Result<u8> {
    let file = fleet.store.directory().join("fleet.key");
    write_secret(&file, &keys.join("\n"))?;
    loop {
        let logs = fleet.nodes.iter().map(Limiter::log);
        let logs = logs.collect::<Result<Vec<_>>>()?;
        let [a, b] = &fleet.nodes[..] else {
            bail!("not two nodes");
        };
        // Each node reads the file in its own time; in between, their keys differ.
        for (from, to) in [(a, b), (b, a)] {
            let prefix = format!("198.51.100.{next}");
            from.show(&["ban", &prefix, "--for", "1h"])?;
            wait_for(to, &prefix, 1)?;
            next += 1;
        }
        if logs
            .iter()
            .all(|log| log.matches(KEYS_READ).count() == times)
        {
            return Ok(next);
        }
        thread::sleep(Duration::from_millis(200));
    }
}

/// By the steps of docs/fleet.md. Nodes that number names with different keys have budgets of their own, which start
/// full. Once all are reloaded, they share again.
#[test]
fn a_key_changes_while_daemons_run() -> Result<()> {
    let (all, limits) = (["a", "b", "c"], with_public_suffixes(LIMITS)?);
    let store = Store::start(all.len())?;
    let text = |store: &Store, number: usize| {
        configuration(store, number, (all[number - 1], &all), &limits, "")
    };
    let nodes = [1, 2].map(|number| start(&store, number, &text(&store, number)));
    let mut fleet = Fleet {
        nodes: nodes.into_iter().collect::<Result<_>>()?,
        store,
    };
    fleet.nodes[0].show(&["ban", "192.0.2.1", "--for", "1h"])?;
    wait_for(&fleet.nodes[1], "192.0.2.1", 1)?;
    let have_one_policy = || {
        let status = status(&fleet.nodes[0])?;
        let [a, b] = ["a", "b"].map(|node| status["nodes"][node]["policy"].clone());
        ensure!(a.is_string() && b.is_string(), "{status}");
        Ok::<_, anyhow::Error>(a == b)
    };
    let mut watch = Watch::begin(&fleet, &BUDGETS)?;
    let flood = flood(&fleet, 1)?;
    watch.used_within(&fleet, DRAINED)?;
    let mut next = 0;
    for (times, keys) in (1..).zip([&[KEY, NEW_KEY][..], &[NEW_KEY, KEY], &[NEW_KEY]]) {
        next = change_keys(&fleet, keys, times, next)?;
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
    fleet.nodes[1].show(&["reload"])?;
    watch.wait_for_use(&fleet, NEARLY_ALL)?;
    wait_until(&fleet.nodes[0], |_| have_one_policy().is_ok_and(|one| one))?;
    flood.stop()?;

    // A later node knows all bans.
    let later = start(&fleet.store, 3, &text(&fleet.store, 3))?;
    fleet.nodes.push(later);
    wait_for(&fleet.nodes[2], "198.51.100.0/24", next.into())?;
    wait_for(&fleet.nodes[2], "192.0.2.1", 1)?;
    for node in &fleet.nodes {
        let status = status(node)?;
        ensure!(status["refused"]["mac"].is_null(), "{status:#}");
    }
    fleet.stop()
}
