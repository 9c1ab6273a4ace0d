//! A rollout on nodes with programs that outlive the daemon.

use std::{fs, thread, time::Duration};

use anyhow::{Result, ensure};
use testbed::PinDirectory;

use super::{POLICY, ensure_untouched, file, has_it, push, pushed, start, wait_for};
use crate::peers::fleet::{ARGUMENTS, wait_until};

/// Pinned programs keep enforcing the unconfirmed policy. The restarted daemon replaces it with the old
/// policy, and takes part in the next rollout.
#[test]
fn a_node_that_is_killed_while_a_policy_waits_has_its_old_one() -> Result<()> {
    let mut fleet = start(&["a", "b"])?;
    let pins = PinDirectory::new()?;
    let argument = pins.argument();
    let arguments = [&ARGUMENTS[..], &[&argument]].concat();
    fleet.nodes[1].terminate()?;
    fleet.nodes[1].restart_with(&arguments)?;
    wait_until(&fleet.nodes[0], |status| {
        status["nodes"]["b"]["ago_ns"].as_u64() < Some(5_000_000_000)
    })?;
    wait_until(&fleet.nodes[1], |status| status["connected"] == true)?;

    let waiting = push(&fleet, &fleet.nodes[0], POLICY, &[])?;
    for node in &fleet.nodes {
        wait_for(node, true)?;
    }
    fleet.nodes[1].kill()?;
    // Without a daemon the policy stays.
    thread::sleep(Duration::from_secs(1));
    ensure!(has_it(&fleet.nodes[1])?);
    fleet.nodes[1].restart_with(&arguments)?;
    ensure!(!has_it(&fleet.nodes[1])? && !file(&fleet.nodes[1]).exists());
    // The other node goes back, as this one is silent or has dropped the policy.
    wait_for(&fleet.nodes[0], false)?;
    let done = waiting.wait_with_output()?;
    ensure!(!done.status.success(), "{done:?}");
    ensure_untouched(&fleet)?;

    // The failed rollout leaves nothing behind.
    let done = pushed(&fleet, &fleet.nodes[0], POLICY, &["--yes"])?;
    ensure!(done.status.success(), "{done:?}");
    for node in &fleet.nodes {
        ensure!(has_it(node)? && fs::read_to_string(file(node))? == POLICY);
    }
    // A kept policy survives a restart.
    fleet.nodes[1].kill()?;
    fleet.nodes[1].restart_with(&arguments)?;
    ensure!(has_it(&fleet.nodes[1])?);
    fleet.stop()
}
