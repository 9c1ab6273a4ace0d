//! A rollout enforces a policy on all nodes, or on none.

use std::{
    fs,
    os::unix::fs::PermissionsExt as _,
    path::PathBuf,
    process::{Child, Stdio},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, ensure};
use limiter_protocol::PushProgress;
use serde_json::Value;
use testbed::{Limiter, PinDirectory};

use super::{ARGUMENTS, Fleet, PACE, PATIENCE, ask, status, store, wait_until};
use crate::wait;

const ACCEPTS: &str = ", accept-policy: fleet.yaml";

const POLICY: &str = "limits: {Pushed: {id: ipAddress, cost: packets, burst: 1000000, count: 1000000, \
                      period: 1s}}\n";

/// Times for a short rollout, which waits for a second or two at each stage. A node without news of the rollout
/// holds the policy for as long as confirmation may take.
const SOON: [&str; 4] = ["--canary-for", "1s", "--confirm", "6s"];

/// The interval between attempts to begin while another rollout is in the way.
const AGAIN: Duration = Duration::from_millis(500);

/// A part of the error message meanwhile.
const IN_THE_WAY: &str = "wait until that is over";

/// How many commands of a rollout are replayed, from all its stages.
const MOST_REPEATED: usize = 8;

/// Starts nodes that take policies. Each makes its folder, which is no reason to reload.
fn start(nodes: &[&str]) -> Result<Fleet> {
    let fleet = Fleet::start_with(nodes, ACCEPTS)?;
    for node in &fleet.nodes {
        let mode = fs::metadata(folder(node))?.permissions().mode();
        ensure!(mode & 0o7022 == 0, "{mode:o}");
    }
    // Wait until all nodes know each other.
    for node in &fleet.nodes {
        wait_until(node, |status| {
            status["nodes"].as_object().map(serde_json::Map::len) == Some(nodes.len())
        })?;
    }
    Ok(fleet)
}

fn folder(node: &Limiter) -> PathBuf {
    node.configuration().with_extension("d")
}

fn file(node: &Limiter) -> PathBuf {
    folder(node).join("fleet.yaml")
}

/// Begins a rollout from a node, once the one before is over.
fn push(fleet: &Fleet, node: &Limiter, policy: &str, more: &[&str]) -> Result<Child> {
    loop {
        wait(|| Ok(!is_pushing(node)))?;
        let mut child = begin(fleet, node, policy, more)?;
        wait(|| Ok(is_pushing(node) || child.try_wait()?.is_some()))?;
        if child.try_wait()?.is_none() {
            return Ok(child);
        }
        let text = errors(child)?;
        ensure!(text.contains(IN_THE_WAY), "{text}");
        thread::sleep(AGAIN);
    }
}

/// Returns whether a node leads a rollout.
fn is_pushing(node: &Limiter) -> bool {
    // Without any rollout, the request fails.
    ask(node, PushProgress).is_ok_and(|status| status["over"] == false)
}

fn begin(fleet: &Fleet, node: &Limiter, policy: &str, more: &[&str]) -> Result<Child> {
    let file = fleet.store.directory().join("policy.yaml");
    fs::write(&file, policy)?;
    let file = file.display().to_string();
    let arguments = [&["fleet", "push", &file], &SOON[..], more].concat();
    let mut command = node.command(&arguments);
    let command = command.stdin(Stdio::null()).stdout(Stdio::piped());
    Ok(command.stderr(Stdio::piped()).spawn()?)
}

/// Waits until a rollout has failed; returns the errors.
fn errors(push: Child) -> Result<String> {
    let done = push.wait_with_output()?;
    ensure!(!done.status.success(), "{done:?}");
    Ok(String::from_utf8(done.stderr)?)
}

fn has_it(node: &Limiter) -> Result<bool> {
    Ok(node.status()?["limits"].get("Pushed").is_some())
}

/// Waits until all nodes have the policy, or none has it.
fn wait_for(fleet: &Fleet, is_there: bool) -> Result<()> {
    for node in &fleet.nodes {
        let deadline = Instant::now() + PATIENCE;
        while has_it(node)? != is_there {
            ensure!(
                Instant::now() < deadline,
                "it is not {is_there} that the policy is there:\n{}\n{:#}",
                node.log()?,
                status(node)?
            );
            thread::sleep(PACE);
        }
    }
    Ok(())
}

fn ensure_untouched(fleet: &Fleet) -> Result<()> {
    for node in &fleet.nodes {
        ensure!(!has_it(node)?, "{}", node.log()?);
        ensure!(!file(node).exists());
    }
    Ok(())
}

/// A good policy is enforced on the canary, then on all nodes, and survives a restart. Before that, all nodes
/// have reported its changes.
#[test]
fn a_policy_that_is_confirmed_stays_on_all_nodes() -> Result<()> {
    let mut fleet = start(&["a", "b", "c"])?;
    let dry = push(&fleet, &fleet.nodes[0], POLICY, &["--dry-run"])?.wait_with_output()?;
    let shown = String::from_utf8(dry.stdout)?;
    ensure!(dry.status.success() && shown.contains("on a, b, c it changes:"));
    ensure!(shown.contains("Pushed"), "{shown}");
    ensure_untouched(&fleet)?;

    let kept = push(&fleet, &fleet.nodes[1], POLICY, &["--yes", "--json"])?.wait_with_output()?;
    let reported: Value = serde_json::from_slice(&kept.stdout).context("no JSON")?;
    ensure!(kept.status.success() && reported["stage"] == "kept");
    ensure!(reported["nodes"]["a"]["canary"] == true, "{reported:#}");
    // The written file equals the policy in force, so nothing is reloaded.
    thread::sleep(Duration::from_secs(3));
    for (name, node) in ["a", "b", "c"].into_iter().zip(&mut fleet.nodes) {
        let status = node.status()?;
        let generation = &status["policy"]["generation"];
        ensure!(*generation == reported["nodes"][name]["generation"]);
        ensure!(status["daemon"]["reloads"]["unconfirmed_for_ns"].is_null());
        ensure!(has_it(node)? && fs::read_to_string(file(node))? == POLICY);
        node.terminate()?;
        node.restart()?;
        ensure!(has_it(node)?, "{}", node.log()?);
    }
    fleet.stop()
}

/// An operator confirms or takes back on any node.
#[test]
fn a_policy_waits_to_be_confirmed() -> Result<()> {
    let fleet = start(&["a", "b"])?;
    let [a, b] = &fleet.nodes[..] else {
        unreachable!()
    };
    let waiting = push(&fleet, a, POLICY, &[])?;
    wait_for(&fleet, true)?;
    let refused = String::from_utf8(b.command(&["confirm"]).output()?.stderr)?;
    ensure!(refused.contains("limiter fleet confirm"), "{refused}");
    let shown = b.show(&["status"])?;
    ensure!(shown.contains("unless you run `limiter fleet confirm` (node a pushes it)\n"));
    let second = errors(begin(&fleet, b, POLICY, &[])?)?;
    ensure!(second.contains("node a pushes a policy"), "{second}");
    b.show(&["fleet", "confirm"])?;
    let done = waiting.wait_with_output()?;
    ensure!(done.status.success(), "{done:?}");
    let shown = b.show(&["fleet", "status"])?;
    ensure!(shown.contains("pushed policies: kept 1\n"), "{shown}");
    ensure!(has_it(a)? && has_it(b)?);

    // Take one back. It is too early to confirm.
    let other = POLICY.replace("Pushed", "Other");
    let waiting = push(&fleet, a, &other, &["--canary", "b"])?;
    wait(|| Ok(!has_it(b)?))?;
    let early = String::from_utf8(b.command(&["fleet", "confirm"]).output()?.stderr)?;
    ensure!(early.contains("once all nodes have it"), "{early}");
    let shown = b.show(&["fleet", "revert"])?;
    ensure!(shown.contains("all nodes are told to go back"), "{shown}");
    let why = errors(waiting)?;
    ensure!(
        why.contains("an operator on node b has it taken back"),
        "{why}"
    );
    wait_for(&fleet, true)?;
    for node in [a, b] {
        ensure!(fs::read_to_string(file(node))? == POLICY);
    }
    fleet.stop()
}

/// No node takes a policy that one node's guard forbids, or that is not valid for all nodes.
#[test]
fn a_policy_that_one_node_refuses_is_in_force_on_none() -> Result<()> {
    let fleet = start(&["a", "b", "c"])?;
    // It would block node b itself.
    let own = store::node_address(2);
    let blocks = format!("lists: [{{name: bad, cidr: {own}}}]\nblock: bad\n");
    let shoes = POLICY.replace("ipAddress", "shoeSize");
    let secrets = "lists: [{name: secrets, file: /etc/shadow}]\nblock: secrets\n";
    for (wrong, why) in [
        (&*blocks, "node b refuses it: the guard is against it"),
        ("interfaces: [lo]\n", "'interfaces' cannot be pushed"),
        (secrets, "a file that is pushed cannot name others"),
        (&shoes, "unknown id 'shoeSize'"),
    ] {
        let text = loop {
            let text = errors(begin(&fleet, &fleet.nodes[0], wrong, &["--yes"])?)?;
            if !text.contains(IN_THE_WAY) {
                break text;
            }
            thread::sleep(AGAIN);
        };
        ensure!(text.contains(why), "{text}");
        ensure_untouched(&fleet)?;
    }
    fleet.stop()
}

/// All nodes return to the earlier policy if `limiter fleet push`, the leading node or the store is gone, or a node
/// restarts.
#[test]
fn whoever_is_gone_all_go_back() -> Result<()> {
    let mut fleet = start(&["a", "b"])?;
    // The command is gone.
    let mut gone = push(&fleet, &fleet.nodes[0], POLICY, &[])?;
    wait_for(&fleet, true)?;
    gone.kill()?;
    gone.wait()?;
    wait_for(&fleet, false)?;
    ensure_untouched(&fleet)?;

    // The leading node is gone, and restarts with its old policy. The other node goes back after `hold_ns`.
    let mut gone = push(&fleet, &fleet.nodes[0], POLICY, &[])?;
    wait_for(&fleet, true)?;
    fleet.nodes[0].kill()?;
    gone.wait()?;
    fleet.nodes[0].restart()?;
    wait_for(&fleet, false)?;
    ensure_untouched(&fleet)?;

    // The store is gone.
    for node in &fleet.nodes {
        wait_until(node, |status| {
            status["connected"] == true
                && status["nodes"].as_object().is_some_and(|nodes| {
                    let mut nodes = nodes.values();
                    nodes.all(|node| node["ago_ns"].as_u64() < Some(10_000_000_000))
                })
        })?;
    }
    let waiting = push(&fleet, &fleet.nodes[0], POLICY, &[])?;
    wait_for(&fleet, true)?;
    fleet.store.kill()?;
    wait_for(&fleet, false)?;
    errors(waiting)?;
    fleet.store.run()?;
    ensure_untouched(&fleet)?;
    fleet.stop()
}

/// An attacker without the key can roll out nothing, neither by writing to the store nor by replaying commands.
#[test]
fn forged_and_repeated_pushes_change_nothing() -> Result<()> {
    let mut fleet = start(&["a", "b"])?;
    let key = "limiter:{edge}:push";
    let redis = |fleet: &Fleet, arguments: &[&str], input: Stdio| {
        let mut command = crate::peers::program::command(fleet.store.namespace(), "redis-cli")?;
        let mut output = command.args(arguments).stdin(input).output()?.stdout;
        // The end of the line.
        output.pop();
        anyhow::Ok(output)
    };
    (fleet.store).command(&["hset", key, "order", "forged", "file", POLICY])?;
    wait_until(&fleet.nodes[1], |status| {
        status["refused"]["mac"].as_u64() >= Some(1)
            || status["refused"]["version"].as_u64() >= Some(1)
    })?;
    ensure_untouched(&fleet)?;

    // Record all commands of a rollout that is not confirmed, like an attacker who reads the store.
    let mut waiting = push(&fleet, &fleet.nodes[0], POLICY, &[])?;
    let recorded = fleet.store.directory().join("command");
    let mut commands = Vec::new();
    while waiting.try_wait()?.is_none() {
        commands.push(redis(&fleet, &["hget", key, "order"], Stdio::null())?);
        thread::sleep(Duration::from_millis(250));
    }
    let why = errors(waiting)?;
    ensure!(why.contains("nobody has confirmed it"), "{why}");
    ensure_untouched(&fleet)?;
    ensure!(commands.len() > MOST_REPEATED);
    // Replay them to a running node and to a restarted one.
    fleet.nodes[1].kill()?;
    fleet.nodes[1].restart()?;
    wait_until(&fleet.nodes[1], |status| status["connected"] == true)?;
    fleet.store.command(&["hset", key, "file", POLICY])?;
    for command in (commands.iter()).step_by(commands.len().div_ceil(MOST_REPEATED)) {
        fs::write(&recorded, command)?;
        let input = fs::File::open(&recorded)?.into();
        redis(&fleet, &["-x", "hset", key, "order"], input)?;
        thread::sleep(Duration::from_millis(1_100));
        ensure_untouched(&fleet)?;
    }
    // Replacing the file has no effect either.
    let other = POLICY.replace("Pushed", "Other");
    let mut waiting = push(&fleet, &fleet.nodes[0], &other, &[])?;
    while waiting.try_wait()?.is_none() {
        fleet.store.command(&["hset", key, "file", POLICY])?;
        ensure_untouched(&fleet)?;
    }
    fleet.stop()
}

/// A node that takes no policies takes none, and does not delay the others.
#[test]
fn a_node_that_takes_no_policies_takes_none() -> Result<()> {
    let fleet = Fleet::start(&["a", "b"])?;
    let a = &fleet.nodes[0];
    let why = errors(push(&fleet, a, POLICY, &["--yes"])?)?;
    ensure!(why.contains("accept-policy"), "{why}");
    ensure!(!has_it(a)? && !folder(a).exists());
    fleet.stop()
}

/// Pinned programs keep enforcing the unconfirmed policy of a killed daemon. The restarted daemon replaces it with the
/// old policy, and takes part in the next rollout.
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
    wait_for(&fleet, true)?;
    fleet.nodes[1].kill()?;
    // Without a daemon the policy stays.
    thread::sleep(Duration::from_secs(1));
    ensure!(has_it(&fleet.nodes[1])?);
    fleet.nodes[1].restart_with(&arguments)?;
    ensure!(!has_it(&fleet.nodes[1])? && !file(&fleet.nodes[1]).exists());
    // The other node goes back, as this one is silent or has dropped the policy.
    wait_for(&fleet, false)?;
    errors(waiting)?;
    ensure_untouched(&fleet)?;

    // The failed rollout leaves nothing behind, and a kept policy survives a restart.
    let kept = push(&fleet, &fleet.nodes[0], POLICY, &["--yes"])?.wait_with_output()?;
    ensure!(kept.status.success(), "{kept:?}");
    for node in &fleet.nodes {
        ensure!(has_it(node)? && fs::read_to_string(file(node))? == POLICY);
    }
    fleet.nodes[1].kill()?;
    fleet.nodes[1].restart_with(&arguments)?;
    ensure!(has_it(&fleet.nodes[1])?);
    fleet.stop()
}
