//! Nodes come and leave, without a list of them.

use anyhow::{Context as _, Result, ensure};

use super::{
    DRAINED, Flood,
    total::{ALL, LIMITS},
    wait_for_share,
    watch::Watch,
};
use crate::peers::fleet::{Fleet, configuration, start, store::Store, wait_until};

const THREE: [&str; 3] = ["a", "b", "c"];

/// A node joins and another leaves, with packets at all nodes: the fleet never admits more than the limit.
#[test]
fn nodes_come_and_leave_within_the_budget() -> Result<()> {
    let store = Store::start(3)?;
    let text = |number: usize| {
        let name = THREE[number - 1];
        configuration(&store, number, (name, &THREE), LIMITS, "")
    };
    let nodes = [start(&store, 1, &text(1))?, start(&store, 2, &text(2))?];
    let third = text(3);
    let mut fleet = Fleet {
        nodes: nodes.into(),
        store,
    };
    let mut watch = Watch::begin(&fleet, &[ALL])?;
    let floods = [Flood::of(&fleet, 1)?, Flood::of(&fleet, 2)?];
    watch.used_within(&fleet, DRAINED)?;
    watch.wait_for_use(&fleet, 93..=100)?;

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
