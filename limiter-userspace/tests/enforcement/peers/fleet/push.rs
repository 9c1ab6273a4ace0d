//! A rollout enforces a policy on all nodes, or on none.

mod pinned;

use std::{
    fs,
    io::Read as _,
    os::unix::fs::PermissionsExt as _,
    path::PathBuf,
    process::{Child, Output, Stdio},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, ensure};
use limiter_userspace::protocol::PushProgress;
use serde_json::Value;
use testbed::{Limiter, Namespace};

use super::{Fleet, PACE, PATIENCE, ask, status, store, wait_until};
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
    let deadline = Instant::now() + PATIENCE;
    loop {
        wait(|| Ok(!is_pushing(node)))?;
        let mut child = begin(fleet, node, policy, more)?;
        wait(|| Ok(is_pushing(node) || child.try_wait()?.is_some()))?;
        if child.try_wait()?.is_none() {
            return Ok(child);
        }
        let mut text = String::new();
        let stderr = child.stderr.as_mut().context("no stderr")?;
        stderr.read_to_string(&mut text)?;
        ensure!(text.contains(IN_THE_WAY), "{text}");
        ensure!(Instant::now() < deadline, "{text}");
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

/// Rolls out a policy, and waits until the rollout is over.
fn pushed(fleet: &Fleet, node: &Limiter, policy: &str, more: &[&str]) -> Result<Output> {
    Ok(push(fleet, node, policy, more)?.wait_with_output()?)
}

fn has_it(node: &Limiter) -> Result<bool> {
    Ok(node.status()?["limits"].get("Pushed").is_some())
}

fn wait_for(node: &Limiter, is_there: bool) -> Result<()> {
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
    let dry = pushed(&fleet, &fleet.nodes[0], POLICY, &["--dry-run"])?;
    let shown = String::from_utf8(dry.stdout)?;
    ensure!(
        dry.status.success() && shown.contains("on a, b, c it changes:"),
        "{shown}"
    );
    ensure!(shown.contains("Pushed"), "{shown}");
    ensure_untouched(&fleet)?;
    // Nor did the folders that the nodes made.
    for node in &fleet.nodes {
        let history = &node.status()?["daemon"]["reloads"];
        ensure!(history["last"].is_null(), "{history:#}");
    }

    let begun = Instant::now();
    let done = pushed(&fleet, &fleet.nodes[1], POLICY, &["--yes", "--json"])?;
    let reported: Value = serde_json::from_slice(&done.stdout).context("no JSON")?;
    ensure!(
        done.status.success() && reported["stage"] == "kept",
        "{reported:#}"
    );
    println!(
        "a policy was kept on three nodes after {:?}",
        begun.elapsed()
    );
    ensure!(reported["nodes"]["a"]["canary"] == true, "{reported:#}");
    // The written file equals the policy in force, so nothing is reloaded.
    thread::sleep(Duration::from_secs(3));
    for (name, node) in ["a", "b", "c"].into_iter().zip(&fleet.nodes) {
        let generation = &node.status()?["policy"]["generation"];
        ensure!(
            *generation == reported["nodes"][name]["generation"],
            "{}",
            node.log()?
        );
    }
    for node in &mut fleet.nodes {
        ensure!(has_it(node)? && fs::read_to_string(file(node))? == POLICY);
        let history = &node.status()?["daemon"]["reloads"];
        ensure!(history["unconfirmed_for_ns"].is_null(), "{history:#}");
        node.terminate()?;
        node.restart()?;
        ensure!(has_it(node)?);
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
    for node in [a, b] {
        wait_for(node, true)?;
    }
    let refused = b.command(&["confirm"]).output()?;
    let text = String::from_utf8(refused.stderr)?;
    ensure!(
        !refused.status.success() && text.contains("limiter fleet confirm"),
        "{text}"
    );
    ensure!(
        b.show(&["status"])?
            .contains("unless you run `limiter fleet confirm` (node a pushes it)\n"),
        "{}",
        b.show(&["status"])?
    );
    let second = begin(&fleet, b, POLICY, &[])?.wait_with_output()?;
    let text = String::from_utf8(second.stderr)?;
    ensure!(text.contains("node a pushes a policy"), "{text}");
    let begun = Instant::now();
    let mut confirms = b.command(&["fleet", "confirm"]).spawn()?;
    // Record the answers of that node, like an attacker who reads the store.
    let answers = "limiter:{edge}:answers";
    let place = fleet.store.directory().join("answers");
    fs::create_dir(&place)?;
    let mut wishes = Vec::new();
    let is_confirmed = loop {
        let dump = place.join(wishes.len().to_string());
        fs::write(
            &dump,
            raw(fleet.store.namespace(), &["hget", answers, "b"])?,
        )?;
        wishes.push(dump);
        if let Some(ended) = confirms.try_wait()? {
            break ended.success();
        }
        thread::sleep(Duration::from_millis(50));
    };
    ensure!(is_confirmed, "{}", b.log()?);
    println!(
        "it was confirmed on another node after {:?}",
        begun.elapsed()
    );
    let done = waiting.wait_with_output()?;
    ensure!(done.status.success(), "{done:?}");
    let shown = b.show(&["fleet", "status"])?;
    ensure!(shown.contains("pushed policies: kept 1\n"), "{shown}");
    ensure!(has_it(a)? && has_it(b)?);

    // Replayed wishes for the first rollout do not confirm the next one.
    let other = POLICY.replace("Pushed", "Other");
    let mut waiting = push(&fleet, a, &other, &["--canary", "b"])?;
    for wish in wishes.iter().cycle() {
        if waiting.try_wait()?.is_some() {
            break;
        }
        set_from(fleet.store.namespace(), (answers, "z"), wish)?;
        thread::sleep(Duration::from_millis(300));
    }
    let done = waiting.wait_with_output()?;
    let text = String::from_utf8(done.stderr)?;
    ensure!(
        !done.status.success() && text.contains("nobody has confirmed it"),
        "{text}"
    );
    for node in [a, b] {
        wait_for(node, true)?;
        ensure!(fs::read_to_string(file(node))? == POLICY);
    }

    // Take one back.
    let waiting = push(&fleet, a, &other, &["--canary", "b"])?;
    wait_for(b, false)?;
    // It is too early to confirm.
    let refused = b.command(&["fleet", "confirm"]).output()?;
    let text = String::from_utf8(refused.stderr)?;
    ensure!(text.contains("once all nodes have it"), "{text}");
    let shown = b.show(&["fleet", "revert"])?;
    ensure!(shown.contains("all nodes are told to go back"), "{shown}");
    let done = waiting.wait_with_output()?;
    let text = String::from_utf8(done.stderr)?;
    ensure!(
        text.contains("an operator on node b has it taken back"),
        "{text}"
    );
    for node in [a, b] {
        wait_for(node, true)?;
    }
    fleet.stop()
}

/// No node takes a policy that one node's guard forbids, or that is not valid for all nodes.
#[test]
fn a_policy_that_one_node_refuses_is_in_force_on_none() -> Result<()> {
    let fleet = start(&["a", "b", "c"])?;
    let a = &fleet.nodes[0];
    // It would block node b itself.
    let own = store::node_address(2);
    let blocks = format!("{POLICY}lists: [{{name: bad, cidr: {own}}}]\nblock: bad\n");
    let done = pushed(&fleet, a, &blocks, &["--yes"])?;
    let text = String::from_utf8(done.stderr)?;
    ensure!(
        text.contains("node b refuses it: the guard is against it"),
        "{text}"
    );
    ensure!(!done.status.success());
    ensure_untouched(&fleet)?;
    for (wrong, why) in [
        (
            format!("{POLICY}interfaces: [lo]\n"),
            "'interfaces' cannot be pushed",
        ),
        (
            format!("{POLICY}lists: [{{name: secrets, file: /etc/shadow}}]\nblock: secrets\n"),
            "a file that is pushed cannot name others",
        ),
        (
            POLICY.replace("ipAddress", "shoeSize"),
            "unknown id 'shoeSize'",
        ),
    ] {
        let text = loop {
            let done = begin(&fleet, a, &wrong, &["--yes"])?.wait_with_output()?;
            let text = String::from_utf8(done.stderr)?;
            ensure!(!done.status.success());
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
    for node in &fleet.nodes {
        wait_for(node, true)?;
    }
    gone.kill()?;
    gone.wait()?;
    for node in &fleet.nodes {
        wait_for(node, false)?;
    }
    ensure_untouched(&fleet)?;

    // The leading node is gone, and restarts with its old policy. The other node goes back after `hold_ms`.
    let mut gone = push(&fleet, &fleet.nodes[0], POLICY, &[])?;
    for node in &fleet.nodes {
        wait_for(node, true)?;
    }
    fleet.nodes[0].kill()?;
    gone.wait()?;
    wait_for(&fleet.nodes[1], false)?;
    fleet.nodes[0].restart()?;
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
    for node in &fleet.nodes {
        wait_for(node, true)?;
    }
    fleet.store.kill()?;
    for node in &fleet.nodes {
        wait_for(node, false)?;
    }
    let done = waiting.wait_with_output()?;
    ensure!(!done.status.success(), "{done:?}");
    fleet.store.run()?;
    ensure_untouched(&fleet)?;
    fleet.stop()
}

/// An attacker without the key can roll out nothing, neither by writing to the store nor by replaying commands.
#[test]
fn forged_and_repeated_pushes_change_nothing() -> Result<()> {
    let mut fleet = start(&["a", "b"])?;
    let other = POLICY.replace("Pushed", "Other");
    let key = "limiter:{edge}:push";
    fleet
        .store
        .command(&["hset", key, "order", "forged", "file", POLICY])?;
    wait_until(&fleet.nodes[1], |status| {
        status["refused"]["mac"].as_u64() >= Some(1)
            || status["refused"]["version"].as_u64() >= Some(1)
    })?;
    ensure_untouched(&fleet)?;

    // Record all commands of a rollout that is taken back, like an attacker who reads the store.
    let mut waiting = push(&fleet, &fleet.nodes[0], POLICY, &[])?;
    let place = fleet.store.directory().join("commands");
    fs::create_dir(&place)?;
    let mut commands: Vec<PathBuf> = Vec::new();
    let deadline = Instant::now() + PATIENCE;
    while waiting.try_wait()?.is_none() {
        ensure!(Instant::now() < deadline);
        let dump = place.join(commands.len().to_string());
        fs::write(
            &dump,
            raw(fleet.store.namespace(), &["hget", key, "order"])?,
        )?;
        commands.push(dump);
        thread::sleep(Duration::from_millis(250));
    }
    ensure_untouched(&fleet)?;
    ensure!(commands.len() > MOST_REPEATED);
    // Replay them to a running node and to a restarted one.
    fleet.nodes[1].kill()?;
    fleet.nodes[1].restart()?;
    wait_until(&fleet.nodes[1], |status| status["connected"] == true)?;
    fleet.store.command(&["hset", key, "file", POLICY])?;
    for command in commands
        .iter()
        .step_by(commands.len().div_ceil(MOST_REPEATED))
    {
        set_from(fleet.store.namespace(), (key, "order"), command)?;
        thread::sleep(Duration::from_millis(1_100));
        ensure_untouched(&fleet)?;
    }
    // Replacing the file has no effect either.
    let mut waiting = push(&fleet, &fleet.nodes[0], &other, &[])?;
    while waiting.try_wait()?.is_none() {
        fleet.store.command(&["hset", key, "file", POLICY])?;
        ensure_untouched(&fleet)?;
    }
    fleet.stop()
}

fn raw(namespace: &Namespace, arguments: &[&str]) -> Result<Vec<u8>> {
    let mut command = crate::peers::program::command(namespace, "redis-cli")?;
    let mut output = command.args(arguments).output()?.stdout;
    // The end of the line.
    output.pop();
    Ok(output)
}

fn set_from(namespace: &Namespace, (key, field): (&str, &str), from: &PathBuf) -> Result<()> {
    let mut command = crate::peers::program::command(namespace, "redis-cli")?;
    let command = command.args(["-x", "hset", key, field]);
    let done = command.stdin(fs::File::open(from)?).output()?;
    ensure!(done.status.success(), "{done:?}");
    Ok(())
}

/// A node that takes no policies takes none, and does not delay the others.
#[test]
fn a_node_that_takes_no_policies_takes_none() -> Result<()> {
    let fleet = Fleet::start(&["a", "b"])?;
    let a = &fleet.nodes[0];
    let done = pushed(&fleet, a, POLICY, &["--yes"])?;
    let text = String::from_utf8(done.stderr)?;
    ensure!(
        !done.status.success() && text.contains("accept-policy"),
        "{text}"
    );
    ensure!(!has_it(a)? && !folder(a).exists());
    fleet.stop()
}
