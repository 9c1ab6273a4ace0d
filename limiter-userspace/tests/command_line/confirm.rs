//! Policies that are reverted unless an operator confirms them.

use std::{path::Path, process::Command};

use anyhow::{Result, ensure};
use testbed::{Frame, Limiter, RawSender, SERVER_INTERFACE};

use crate::{
    BINARY, GOOD, Scene, assert_fails, pair,
    pinned::{Pinned, program, send},
    succeed, text, wait_for,
};

const CLIENT: &str = "10.77.0.2";
const OLD: &str = "limits: {PacketsPerIPAddress: {burst: 10, count: 1, period: 1h}}\n";

/// The new policy, without the old one's limit.
const NEW: &str = "limits: {PacketsPerIPv4Range: {burst: 100, count: 1, period: 1h}}\n";

/// Starts a limiter with the old policy settled and the new one awaiting confirmation.
fn unconfirmed(patience: &str) -> Result<Pinned> {
    let mut pinned = Pinned::start(OLD)?;
    pinned.send(CLIENT, 4)?;
    ensure!(pinned.limiter.terminate()?.success());
    pinned.limiter.configure(NEW)?;
    pinned.restart_with(&["--confirm", patience])?;
    Ok(pinned)
}

/// Fails unless the old policy is in force with all of its state.
fn assert_old(pinned: &Pinned) -> Result<()> {
    let status = pinned.limiter.status()?;
    ensure!(
        status["limits"]["PacketsPerIPAddress"].is_object(),
        "{status:#}"
    );
    let remaining = pinned.remaining("PacketsPerIPAddress", CLIENT)?;
    ensure!(remaining == 6, "{remaining} remain");
    ensure!(pinned.counted("within_limits")? == 4);
    pinned.send(CLIENT, 7)?;
    ensure!(pinned.counted("over_limit")? == 1);
    Ok(())
}

#[test]
fn a_policy_that_is_confirmed_stays() -> Result<()> {
    let pinned = unconfirmed("60s")?;
    let status = pinned.limiter.status()?;
    ensure!(status["policy"]["generation"] == 2);
    let left = status["daemon"]["reloads"]["unconfirmed_for_ns"].as_u64();
    ensure!(left.is_some_and(|ns| ns <= 60_000_000_000), "{status:#}");
    let shown = pinned.limiter.show(&["status"])?;
    ensure!(shown.contains("NOT CONFIRMED: reverted in "), "{shown}");
    let confirmed = pinned.limiter.show(&["confirm"])?;
    ensure!(confirmed == "policy 2 stays in force\n", "{confirmed}");
    let status = pinned.limiter.status()?;
    ensure!(status["daemon"]["reloads"]["unconfirmed_for_ns"].is_null());
    assert_fails(
        &mut pinned.limiter.command(&["confirm"]),
        &["no policy waits to be confirmed"],
    )
}

#[test]
fn a_policy_that_is_not_confirmed_is_reverted() -> Result<()> {
    let pinned = unconfirmed("1s")?;
    wait_for(|| {
        let status = pinned.limiter.status()?;
        Ok(status["daemon"]["reloads"]["unconfirmed_for_ns"].is_null())
    })?;
    let reported = "not confirmed in time: policy 1 is in force again";
    let shown = pinned.limiter.show(&["status"])?;
    ensure!(shown.contains(reported), "{shown}");
    pinned.limiter.wait_for_log(reported)?;
    ensure!(pinned.limiter.status()?["policy"]["generation"] == 1);
    assert_old(&pinned)
}

/// A first policy cannot lock an operator out for good either.
#[test]
fn a_first_policy_that_is_not_confirmed_is_detached() -> Result<()> {
    let mut pinned = Pinned::start_with(GOOD, &["-i", SERVER_INTERFACE, "--confirm", "8s"])?;
    ensure!(program(&pinned.pair.server, SERVER_INTERFACE)?.is_some());
    let ended = pinned.limiter.wait()?;
    ensure!(ended.code() == Some(1), "{ended}");
    let log = pinned.limiter.log()?;
    ensure!(
        log.ends_with(
            "the policy was not confirmed in time (limiter confirm): there was none before it, \
             so everything is detached\n"
        ),
        "{log}"
    );
    pinned.assert_detached()?;
    ensure!(!pinned.limiter.socket().exists());
    Ok(())
}

/// Reverting needs no pins.
#[test]
fn a_reload_that_is_not_confirmed_is_reverted() -> Result<()> {
    let pair = pair()?;
    let limiter = Limiter::start(
        Path::new(BINARY),
        &pair.server,
        OLD,
        &["-i", SERVER_INTERFACE, "--confirm", "8s"],
    )?;
    limiter.show(&["confirm"])?;
    send(&pair, CLIENT, 4)?;
    limiter.configure(NEW)?;
    limiter.show(&["reload"])?;
    ensure!(limiter.status()?["limits"]["PacketsPerIPv4Range"].is_object());
    send(&pair, CLIENT, 1)?;
    wait_for(|| Ok(limiter.status()?["policy"]["generation"] == 1))?;
    send(&pair, CLIENT, 7)?;
    let status = limiter.status()?;
    ensure!(
        status["reasons"]["within_limits"] == 4 + 1 + 6,
        "{status:#}"
    );
    ensure!(status["reasons"]["over_limit"] == 1, "{status:#}");
    ensure!(limiter.stop()?.success());
    Ok(())
}

#[test]
fn killed_before_it_is_confirmed() -> Result<()> {
    let mut pinned = unconfirmed("60s")?;
    pinned.limiter.kill()?;
    // Until the next daemon starts, the last policy put in force stays active.
    ensure!(pinned.limiter.status()?["policy"]["generation"] == 2);
    pinned.limiter.configure(OLD)?;
    pinned.restart_with(&[])?;
    let log = pinned.limiter.log()?;
    ensure!(
        log.contains(
            "the pinned policy 2 was not confirmed or only partly put in force: taking over \
             policy 1"
        ),
        "{log}"
    );
    assert_old(&pinned)
}

/// The next daemon does not take it for a confirmed policy.
#[test]
fn a_first_policy_killed_before_it_is_confirmed() -> Result<()> {
    let mut pinned = Pinned::start_with(OLD, &["-i", SERVER_INTERFACE, "--confirm", "60s"])?;
    pinned.send(CLIENT, 4)?;
    pinned.limiter.kill()?;
    pinned.restart_with(&["--confirm", "8s"])?;
    let log = pinned.limiter.log()?;
    ensure!(
        log.contains("was not confirmed or only partly put in force: there was none before it"),
        "{log}"
    );
    assert_old(&pinned)?;
    ensure!(pinned.limiter.wait()?.code() == Some(1));
    pinned.assert_detached()
}

/// The set of interfaces is reverted, too. An interface that appeared while the policy waited stays
/// limited.
#[test]
fn interfaces_are_reverted() -> Result<()> {
    let configuration =
        |interfaces: &str, policy: &str| format!("interfaces: [{interfaces}]\n{policy}");
    let mut pinned = Pinned::start_with(&configuration("server0, later0", OLD), &[])?;
    let server = &pinned.pair.server;
    let has_program = |name: &str| Ok::<_, anyhow::Error>(program(server, name)?.is_some());
    let add = |name: &str| {
        let peer = format!("{name}-peer");
        server.ip_batch(&format!(
            "link add {name} type veth peer name {peer}\nlink set {name} up\nlink set {peer} up\n"
        ))
    };
    add("added0")?;
    ensure!(pinned.limiter.terminate()?.success());
    pinned
        .limiter
        .configure(&configuration("added0, later0", NEW))?;
    let pin = pinned.pins.argument();
    let arguments = [&pin, "--log-format", "human", "--confirm", "6s"];
    pinned.limiter.restart_with(&arguments)?;
    ensure!(has_program("added0")?);
    // The program stays on the interface until the policy is confirmed.
    ensure!(has_program("server0")?);
    add("later0")?;
    wait_for(|| has_program("later0"))?;

    wait_for(|| Ok(pinned.limiter.status()?["policy"]["generation"] == 1))?;
    ensure!(has_program("server0")? && !has_program("added0")?);
    wait_for(|| has_program("later0"))?;
    let frame = Frame::new(CLIENT.parse()?, "10.77.0.1".parse()?).udp(1, 2, &[0; 58])?;
    RawSender::new(server, "later0-peer")?.send_frames(&vec![frame; 11])?;
    wait_for(|| Ok(pinned.counted("over_limit")? == 1))
}

/// A policy with another store leaves the buckets of the previous one alone.
#[test]
fn killed_before_another_store_is_confirmed() -> Result<()> {
    let mut pinned = Pinned::start(OLD)?;
    pinned.send(CLIENT, 4)?;
    pinned.limiter.kill()?;
    pinned
        .limiter
        .configure(&format!("buckets: {{store: hash}}\n{NEW}"))?;
    pinned.restart_with(&["--confirm", "60s"])?;
    pinned.limiter.kill()?;
    pinned.limiter.configure(OLD)?;
    pinned.restart_with(&[])?;
    assert_old(&pinned)
}

#[test]
fn nothing_is_reloaded_while_one_waits() -> Result<()> {
    let pinned = unconfirmed("60s")?;
    let refusal = "the policy in force waits to be confirmed: run `limiter confirm` first, or \
                   wait until it is reverted";
    pinned.limiter.configure(OLD)?;
    assert_fails(&mut pinned.limiter.command(&["reload"]), &[refusal])?;
    ensure!(pinned.limiter.status()?["policy"]["generation"] == 2);

    pinned.limiter.show(&["confirm"])?;
    let reloaded = succeed(&mut pinned.limiter.command(&["reload"]))?;
    let reported = text(&reloaded.stdout)?;
    ensure!(
        reported.starts_with("policy 3 is in force: 1 limit, 0 overrides\nit is reverted in "),
        "{reported}"
    );
    pinned.limiter.show(&["confirm"])?;
    assert_old(&pinned)
}

#[test]
fn nothing_waits_where_no_daemon_runs() -> Result<()> {
    let scene = Scene::new()?;
    let mut confirm = Command::new(BINARY);
    confirm.arg("confirm").arg("--socket").arg(scene.socket());
    assert_fails(&mut confirm, &["no limiter is running …"])
}
