//! Messages are spread over the servers of a Cluster.

use std::{
    thread,
    time::{Duration, Instant},
};

use anyhow::{Result, ensure};
use nix::sys::signal::Signal;
use testbed::Limiter;

use super::{
    DRAINED, Flood, share,
    total::{ALL, LIMITS},
    wait_for_share,
    watch::Watch,
};
use crate::peers::fleet::{
    Fleet, PACE,
    cluster::{Cluster, ask, id, place},
    configuration_at, servers, start, status, wait_until,
};

/// The nodes' names, each with the server of its messages. The first server also has all other keys of the
/// fleet.
const NODES: [(&str, usize); 3] = [("c", 0), ("a", 1), ("d", 2)];

/// How long to watch a node's share after the Cluster has changed.
const WATCHED: Duration = Duration::from_secs(8);

/// Returns whether a share, in thousandths, is everything but the others' minimum shares.
const fn nearly_all(share: u64) -> bool {
    share > 950
}

/// Starts a Cluster of three servers and three nodes, each node with a different first address. Checks that
/// each server has one node's messages.
fn begin() -> Result<(Cluster, Fleet)> {
    let store = servers::place(NODES.len())?;
    let cluster = Cluster::start(&store, NODES.len())?;
    let names = NODES.map(|(name, _)| name);
    let mut nodes = Vec::new();
    for (number, name) in names.into_iter().enumerate() {
        let places = [1, 2, 0].map(|other| place((number + other) % NODES.len()));
        let text = configuration_at(&store, &places.join(","), (name, &names), LIMITS, "");
        nodes.push(start(&store, number + 1, &text)?);
    }
    let fleet = Fleet { store, nodes };
    for node in &fleet.nodes {
        wait_until(node, |status| status["connected"] == true)?;
    }
    for (name, server) in NODES {
        crate::wait(|| has_messages_of(&fleet, server, name))?;
    }
    Ok((cluster, fleet))
}

/// Returns whether a server has the messages of that node only.
fn has_messages_of(fleet: &Fleet, server: usize, name: &str) -> Result<bool> {
    let keys = ask(&fleet.store, server, &["KEYS", "limiter:letters:*"])?;
    Ok(keys.trim() == stream(name))
}

fn stream(name: &str) -> String {
    format!("limiter:letters:{{edge:{name}}}")
}

/// Returns whether a node reports that a server takes its messages; `None`: the node sends it none.
fn takes(node: &Limiter, server: usize) -> Result<Option<bool>> {
    let status = status(node)?;
    let reported = status["message_servers"].get(place(server));
    Ok(reported.map(serde_json::Value::is_null))
}

/// Nodes share budgets with messages on any server. While one server is stopped, and then gone, the other
/// nodes share.
#[test]
fn messages_are_spread_over_the_servers_of_a_cluster() -> Result<()> {
    let (mut cluster, fleet) = begin()?;
    let [first, second, third] = &fleet.nodes[..] else {
        unreachable!("three nodes");
    };
    let mut watch = Watch::begin(&fleet, &[ALL])?;

    let flood = Flood::of(&fleet, 1)?;
    println!(
        "the first had nearly all after {:?}",
        wait_for_share(first, nearly_all)?
    );
    watch.used_within(&fleet, DRAINED)?;
    watch.wait_for_use(&fleet, 95..=100)?;
    for server in [1, 2] {
        ensure!(takes(first, server)? == Some(true), "{:#}", status(first)?);
    }
    flood.stop()?;
    let flood = Flood::of(&fleet, 3)?;
    println!(
        "the third had nearly all after {:?}",
        wait_for_share(third, nearly_all)?
    );
    watch.wait_for_use(&fleet, 95..=100)?;

    // The third node has nearly everything when its server stops: its loans end.
    cluster.server(2)?.signal(Signal::SIGSTOP)?;
    println!(
        "the third had its part after {:?}",
        wait_for_share(third, |share| share <= 334)?
    );
    let others = Flood::of(&fleet, 1)?;
    let its_two_thirds = |share| (600..=650).contains(&share);
    println!(
        "the first had two thirds after {:?}",
        wait_for_share(first, its_two_thirds)?
    );
    watch.wait_for_use(&fleet, 95..=100)?;
    crate::wait(|| Ok(takes(first, 2)? == Some(false)))?;
    cluster.kill(2);
    others.stop()?;
    let others = Flood::of(&fleet, 2)?;
    println!(
        "the second had two thirds after {:?}",
        wait_for_share(second, its_two_thirds)?
    );
    watch.wait_for_use(&fleet, 95..=100)?;
    others.stop()?;

    cluster.restart(&fleet.store, 2)?;
    println!(
        "the third had nearly all after {:?}",
        wait_for_share(third, nearly_all)?
    );
    watch.wait_for_use(&fleet, 95..=100)?;
    crate::wait(|| Ok(takes(third, 0)? == Some(true) && takes(third, 1)? == Some(true)))?;
    flood.stop()?;
    fleet.stop()
}

/// A node's messages move to another server, and a replica replaces another node's server.
#[test]
fn messages_follow_streams_that_a_cluster_moves() -> Result<()> {
    let (mut cluster, fleet) = begin()?;
    cluster.add_replica(&fleet.store, 2)?;
    let [_, second, third] = &fleet.nodes[..] else {
        unreachable!("three nodes");
    };
    let mut watch = Watch::begin(&fleet, &[ALL])?;
    let flood = Flood::of(&fleet, 2)?;
    wait_for_share(second, nearly_all)?;
    watch.used_within(&fleet, DRAINED)?;

    move_messages(&fleet, "a", 1, 0)?;
    let less = had_less(second, Instant::now())?;
    println!("the second had less than nearly all until {less:?} after its messages moved");
    wait_for_share(second, nearly_all)?;
    watch.wait_for_use(&fleet, 95..=100)?;
    let on_first = ask(&fleet.store, 0, &["KEYS", "limiter:letters:*"])?;
    ensure!(on_first.contains(&stream("a")), "{on_first}");
    flood.stop()?;

    let flood = Flood::of(&fleet, 3)?;
    wait_for_share(third, nearly_all)?;
    watch.used_within(&fleet, DRAINED)?;
    let killed = Instant::now();
    cluster.kill(2);
    let role = || Ok(ask(&fleet.store, 3, &["ROLE"])?.starts_with("master"));
    crate::wait(role)?;
    println!("the replica took its place after {:?}", killed.elapsed());
    let less = had_less(third, killed)?;
    println!("the third had less than nearly all until {less:?} after its server died");
    wait_for_share(third, nearly_all)?;
    watch.wait_for_use(&fleet, 95..=100)?;
    flood.stop()?;
    fleet.stop()
}

/// Watches a node's share for a time; returns when it last had less than nearly everything.
fn had_less(node: &Limiter, since: Instant) -> Result<Duration> {
    let (begun, mut until) = (Instant::now(), Duration::ZERO);
    while begun.elapsed() < WATCHED {
        if !nearly_all(share(&status(node)?)) {
            until = since.elapsed();
        }
        thread::sleep(PACE);
    }
    Ok(until)
}

/// Moves a node's messages to another server, like `redis-cli --cluster reshard`.
fn move_messages(fleet: &Fleet, name: &str, from: usize, to: usize) -> Result<()> {
    let store = &fleet.store;
    let stream = stream(name);
    let slot = ask(store, 0, &["CLUSTER", "KEYSLOT", &stream])?;
    let slot = slot.trim();
    let (source, target) = (id(store, from)?, id(store, to)?);
    let set = |server, how, which: &str| {
        let reported = ask(store, server, &["CLUSTER", "SETSLOT", slot, how, which])?;
        ensure!(reported.trim() == "OK", "{reported}");
        Ok(())
    };
    set(to, "IMPORTING", &source)?;
    set(from, "MIGRATING", &target)?;
    let target_place = place(to);
    let (host, port) = target_place.split_once(':').unwrap_or_default();
    let reported = ask(store, from, &["MIGRATE", host, port, &stream, "0", "5000"])?;
    ensure!(reported.trim() == "OK", "{reported}");
    for server in [to, from, 2] {
        set(server, "NODE", &target)?;
    }
    Ok(())
}
