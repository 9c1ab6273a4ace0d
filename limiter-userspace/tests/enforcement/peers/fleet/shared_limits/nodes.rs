//! Nodes join and leave.

use anyhow::{Context as _, Result, ensure};
use testbed::PinDirectory;

use super::{
    DRAINED, Flood, share,
    total::{ALL, LIMITS},
    wait_for_parts,
    watch::{Budget, Watch},
};
use crate::peers::{
    PASSES,
    fleet::{ARGUMENTS, Fleet, configuration, start, status, store::Store},
};

/// A node joins and another leaves, with packets at all nodes: the fleet never admits more than the limit.
#[test]
fn nodes_come_and_leave_within_the_budget() -> Result<()> {
    let mut fleet = Fleet::among(Store::start(3)?, &["a", "b"], LIMITS, "")?;
    wait_for_parts(&fleet, "All")?;
    // The programs go on without their daemons.
    let pins = [PinDirectory::new()?, PinDirectory::new()?];
    for (node, pins) in fleet.nodes.iter_mut().zip(&pins) {
        node.terminate()?;
        node.restart_with(&[&ARGUMENTS[..], &[&pins.argument()]].concat())?;
    }
    let mut watch = Watch::begin(&fleet, &[ALL])?;
    let floods = [Flood::of(&fleet, 1)?, Flood::of(&fleet, 2)?];
    watch.used_within(&fleet, DRAINED)?;
    watch.wait_for_use(&fleet, 93..=100)?;

    let (two, three) = (["a", "b"], ["a", "b", "c"]);
    begin_with(&mut fleet, &mut watch, &two, ", next-nodes: [a, b, c]")?;
    // Two thirds of the lent part, plus the minimum shares: a third of them has no node yet.
    watch.wait_for_use(&fleet, 62..=67)?;
    watch.used_within(&fleet, Budget::FULL)?;
    begin_with(&mut fleet, &mut watch, &three, "")?;
    let text = configuration(&fleet.store, 3, ("c", &three), LIMITS, "");
    fleet.nodes.push(start(&fleet.store, 3, &text)?);
    let third = Flood::of(&fleet, 3)?;
    watch.wait_for_use(&fleet, 93..=100)?;

    begin_with(&mut fleet, &mut watch, &three, ", next-nodes: [a, b]")?;
    third.stop()?;
    let leaving = fleet.nodes.pop().context("no third node")?;
    watch.leaves(&leaving)?;
    ensure!(leaving.stop()?.success());
    watch.wait_for_use(&fleet, 62..=67)?;
    watch.used_within(&fleet, Budget::FULL)?;
    begin_with(&mut fleet, &mut watch, &two, "")?;
    watch.wait_for_use(&fleet, 93..=100)?;
    for flood in floods {
        flood.stop()?;
    }
    fleet.stop()
}

/// Restarts the first two nodes, one after the other, with another list of members.
fn begin_with(fleet: &mut Fleet, watch: &mut Watch, nodes: &[&str], more: &str) -> Result<()> {
    for (number, name) in [(1, "a"), (2, "b")] {
        let text = configuration(&fleet.store, number, (name, nodes), LIMITS, more);
        let node = &mut fleet.nodes[number - 1];
        node.configure(&text)?;
        node.kill()?;
        node.restart()?;
        watch.used_within(fleet, DRAINED)?;
        if number == 1 {
            let shown = fleet.nodes[0].show(&["fleet", "status"])?;
            let others = "other `nodes` or `next-nodes` than this one's: b";
            ensure!(shown.contains(others), "{shown}");
        }
    }
    Ok(())
}

/// A running daemon refuses a list other than the announced next one: a shorter list, for one, would raise
/// its minimum share at once, together with the policy.
#[test]
fn a_list_that_skips_a_step_is_refused() -> Result<()> {
    let fleet = Fleet::with(&["a", "b", "c"], LIMITS)?;
    wait_for_parts(&fleet, "All")?;
    let node = &fleet.nodes[0];
    let text = |nodes: &[&str], limits: &str, more: &str| {
        configuration(&fleet.store, 1, ("a", nodes), limits, more)
    };
    let two = ["a", "b"];
    node.configure(&text(&two, LIMITS, ""))?;
    let why = "the fleet's nodes are others than those in force, a, b, c: name the new ones as next-nodes first";
    let file = node.configuration().display().to_string();
    for command in [&["reload"][..], &["check", "--diff", &file]] {
        let output = node.command(command).output()?;
        let reported = String::from_utf8(output.stderr)?;
        ensure!(
            !output.status.success() && reported.contains(why),
            "{reported}"
        );
    }
    node.wait_for_log(&format!("not reloaded: {why}"))?;
    ensure!(share(&status(node)?) >= 333, "{:#}", status(node)?);
    let steps = [
        // Both lists, another next list, and back; a leaving node no longer shares.
        text(&["a", "b", "c"], LIMITS, ", next-nodes: [a, b]"),
        text(&["a", "b", "c"], LIMITS, ", next-nodes: [a, c]"),
        text(&["a", "b", "c"], LIMITS, ""),
        text(&two, PASSES, ""),
    ];
    for text in steps {
        node.configure(&text)?;
        node.show(&["reload"])?;
    }
    fleet.stop()
}
