//! A replica takes over the store while nodes have leases.

use std::time::Instant;

use anyhow::Result;

use super::{
    DRAINED, Flood,
    nodes::{ALL, LIMITS},
    wait_for_share,
    watch::Watch,
};
use crate::peers::fleet::{
    Fleet,
    cluster::{Cluster, ask, place},
    configuration_at,
    five::check_recovery,
    servers, start,
};

const SERVERS: usize = 3;

/// The first server of a Cluster has all keys of the fleet. It dies, and its replica may lack the last writes.
#[test]
fn leases_survive_a_failover_within_the_budget() -> Result<()> {
    let store = servers::place(2)?;
    let mut cluster = Cluster::start(&store, SERVERS)?;
    cluster.add_replica(&store, 0)?;
    let names = ["a", "b"];
    let mut nodes = Vec::new();
    for (number, name) in names.into_iter().enumerate() {
        // Each node asks another server first.
        let places = [1, 2, 0].map(|other| place((number + other) % SERVERS));
        let text = configuration_at(&store, &places.join(","), (name, &names), LIMITS, "");
        nodes.push(start(&store, number + 1, &text)?);
    }
    let fleet = Fleet { store, nodes };
    let mut watch = Watch::begin_at(&fleet, &[ALL], |command| ask(&fleet.store, 0, command))?;
    let flood = Flood::of(&fleet, 1)?;
    watch.used_within(&fleet, DRAINED)?;
    watch.wait_for_use(&fleet, 95..=100)?;
    let killed = Instant::now();
    cluster.kill(0);
    crate::wait(|| Ok(ask(&fleet.store, SERVERS, &["ROLE"])?.starts_with("master")))?;
    println!("the replica took its place after {:?}", killed.elapsed());
    watch.wait_for_use(&fleet, 95..=100)?;
    let promoted = Instant::now();
    flood.stop()?;
    let flood = Flood::of(&fleet, 2)?;
    wait_for_share(&fleet.nodes[1], |share| share > 950)?;
    check_recovery("the other node", promoted.elapsed())?;
    watch.wait_for_use(&fleet, 95..=100)?;
    flood.stop()?;
    fleet.stop()
}
