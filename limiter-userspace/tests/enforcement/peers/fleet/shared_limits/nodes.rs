//! Nodes come and leave without a list of them, and their limit changes.

use anyhow::{Context as _, Result, ensure};

use super::{
    DRAINED, Flood, share, wait_for_share,
    watch::{Budget, Watch},
};
use crate::peers::fleet::{Fleet, configuration, start, store::Store, wait_for, wait_until};

pub(in super::super) const LIMITS: &str = "limits:
  Passing: {id: total, cost: packets, burst: 1000000, count: 1000000, period: 1s}
  All: {id: total, cost: packets, match: {protocol: udp, destination-port: 9}, scope: fleet, burst: 2000,
        count: 1000, period: 1s}";

pub(in super::super) const ALL: Budget = Budget {
    limit: "All",
    passed: "passed_packets",
    rate: 1_000,
};

const THREE: [&str; 3] = ["a", "b", "c"];

/// A node joins and another leaves, with packets at all nodes: the fleet never admits more than the limit. While the
/// rest are reloaded one after another with twice the rate, each uses its lease by its own rate.
#[test]
fn nodes_and_rates_change_within_the_budget() -> Result<()> {
    let store = Store::start(3)?;
    let text = |store: &Store, number: usize, limits: &str| {
        configuration(store, number, (THREE[number - 1], &THREE), limits, "")
    };
    let nodes = [1, 2].map(|number| start(&store, number, &text(&store, number, LIMITS)));
    let mut fleet = Fleet {
        nodes: nodes.into_iter().collect::<Result<_>>()?,
        store,
    };
    let mut watch = Watch::begin(&fleet, &[ALL])?;
    let floods = [Flood::of(&fleet, 1)?, Flood::of(&fleet, 2)?];
    watch.used_within(&fleet, DRAINED)?;
    watch.wait_for_use(&fleet, 93..=100)?;

    let third = text(&fleet.store, 3, LIMITS);
    fleet.nodes.push(start(&fleet.store, 3, &third)?);
    let flood = Flood::of(&fleet, 3)?;
    for node in &fleet.nodes {
        wait_for_share(node, |share| (300..=340).contains(&share))?;
    }
    watch.wait_for_use(&fleet, 93..=100)?;
    flood.stop()?;
    let leaving = fleet.nodes.pop().context("no third node")?;
    watch.leaves(&leaving)?;
    ensure!(leaving.stop()?.success());
    watch.used_within(&fleet, DRAINED)?;
    watch.wait_for_use(&fleet, 93..=100)?;

    let changed = LIMITS.replace("count: 1000", "count: 2000");
    for (number, node) in (1..).zip(&fleet.nodes) {
        node.configure(&text(&fleet.store, number, &changed))?;
        node.show(&["reload"])?;
        wait_until(node, |status| {
            let rate = status["shares"]["All"]["rate"].as_u64();
            share(status) > 400 && rate > Some(800)
        })?;
    }
    for flood in floods {
        flood.stop()?;
    }
    fleet.stop()
}

/// Two daemons with one name, and one more than `nodes` allows: each is told, and has the minimum share.
#[test]
fn a_node_too_many_is_told() -> Result<()> {
    let store = Store::start(3)?;
    let two = ["a", "b"];
    let text = |number: usize, name: &str| {
        let text = configuration(&store, number, (name, &two), LIMITS, "");
        text.replace(&format!("/state-{name}"), &format!("/state-{number}"))
    };
    let a = start(&store, 1, &text(1, "a"))?;
    wait_until(&a, |status| status["sharing_nodes"] == 1)?;
    // The later daemon has the name.
    let same = start(&store, 2, &text(2, "a"))?;
    let taken = "another node has this node's name: each needs a `node` of its own";
    wait_until(&a, |status| status["leases_error"] == taken)?;
    let rival = "another node uses this node's name, and has its minimum share: each needs a `node` of its own";
    wait_until(&same, |status| status["leases_error"] == rival)?;
    wait_for_share(&a, |share| share == 25)?;
    a.wait_for_log(taken)?;
    for node in [&a, &same] {
        node.wait_for_log("another host sends heartbeats as the fleet's node a, too")?;
    }
    // Bans come and go.
    a.show(&["ban", "192.0.2.1", "--for", "1h"])?;
    wait_for(&same, "192.0.2.1", 1)?;
    same.show(&["unban", "192.0.2.1"])?;
    wait_for(&a, "192.0.2.1", 0)?;
    same.wait_for_log(rival)?;
    ensure!(a.stop()?.success());
    wait_until(&same, |status| status["leases_error"].is_null())?;

    let b = start(&store, 1, &text(1, "b"))?;
    wait_until(&b, |status| status["sharing_nodes"] == 2)?;
    let c = start(&store, 3, &text(3, "c"))?;
    let full = "more nodes run than `nodes` in the section 'fleet' allows: raise it on all of them";
    wait_until(&c, |status| status["leases_error"] == full)?;
    for node in [same, b, c] {
        ensure!(node.stop()?.success());
    }
    Ok(())
}
