//! Interfaces that cannot be had, are taken, vanish, or are slow.

use anyhow::{Result, ensure};
use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use std::path::Path;
use testbed::{Limiter, SERVER_INTERFACE};

use crate::{BINARY, GOOD, Scene, assert_fails, assert_nothing_left, pair, wait_for};

#[test]
fn none_given_or_none_there() -> Result<()> {
    let (scene, pair) = (Scene::new()?, pair()?);
    assert_fails(
        &mut scene.run(&pair.server, &[]),
        &[
            "no interface to attach to: name one with -i, or in the configuration under \
           `interfaces`",
        ],
    )?;
    assert_fails(
        &mut scene.run(&pair.server, &["-i", SERVER_INTERFACE, "-i", "eth9"]),
        &["no interface is named 'eth9'; there are: lo, server0"],
    )?;
    assert_nothing_left(&pair, &scene.socket())
}

/// The kernel runs no generic program beside a native one, nor the other way round.
#[test]
fn another_program_is_named_whatever_the_modes() -> Result<()> {
    let (scene, pair) = (Scene::new()?, pair()?);
    for (mode_of_first, hook) in [("native", "xdpdrv"), ("generic", "xdpgeneric")] {
        let first = Limiter::start(
            Path::new(BINARY),
            &pair.server,
            GOOD,
            &["-i", SERVER_INTERFACE, "--mode", mode_of_first],
        )?;
        let told = format!(
            "server0 already has the XDP program 'limiter' (id …), beside which no other runs, in \
             whatever mode: stop what attached it, or detach it (ip link set dev server0 {hook} off)"
        );
        for mode in ["auto", "native", "generic"] {
            assert_fails(
                &mut scene.run(&pair.server, &["-i", SERVER_INTERFACE, "--mode", mode]),
                &[&told],
            )?;
        }
        let interface = &first.status()?["interfaces"][0];
        ensure!(interface["attached"] == true && interface["mode"] == mode_of_first);
        ensure!(first.stop()?.success());
        assert_nothing_left(&pair, &scene.socket())?;
    }
    Ok(())
}

/// The loopback device has no native XDP.
#[test]
fn native_mode_fails_where_auto_falls_back() -> Result<()> {
    let (scene, pair) = (Scene::new()?, pair()?);
    assert_fails(
        &mut scene.run(&pair.server, &["-i", "lo", "--mode", "native"]),
        &[
            "lo cannot run XDP in native mode (…): use `--mode generic`, or `--mode auto` to fall \
           back to it",
        ],
    )?;
    let limiter = Limiter::start(
        Path::new(BINARY),
        &pair.server,
        GOOD,
        &["-i", "lo", "--log-format", "human"],
    )?;
    ensure!(
        limiter
            .log()?
            .contains("WARN attached to lo in generic mode")
    );
    let interface = &limiter.status()?["interfaces"][0];
    assert_eq!(interface["mode"], "generic");
    assert_eq!(interface["attached"], true);
    ensure!(interface["fell_back"].is_string());
    let shown = limiter.show(&["status"])?;
    ensure!(
        shown.contains("lo: attached in generic mode since "),
        "{shown}"
    );
    ensure!(
        shown.contains("slow: the driver refused native mode"),
        "{shown}"
    );
    Ok(())
}

#[test]
fn signals_detach() -> Result<()> {
    for signal in [Signal::SIGTERM, Signal::SIGINT, Signal::SIGKILL] {
        let (scene, pair) = (Scene::new()?, pair()?);
        let mut child = scene.run(&pair.server, &["-i", SERVER_INTERFACE]).spawn()?;
        wait_for(|| Ok(scene.socket().exists()))?;
        kill(Pid::from_raw(child.id().try_into()?), signal)?;
        let status = child.wait()?;
        if signal == Signal::SIGKILL {
            // Nobody was left to remove the socket; the next daemon replaces it.
            wait_for(|| Ok(assert_nothing_left(&pair, Path::new("/nonexistent")).is_ok()))?;
            let mut next = scene.run(&pair.server, &["-i", SERVER_INTERFACE]).spawn()?;
            wait_for(|| Ok(std::os::unix::net::UnixStream::connect(scene.socket()).is_ok()))?;
            kill(Pid::from_raw(next.id().try_into()?), Signal::SIGTERM)?;
            ensure!(next.wait()?.success());
        } else {
            ensure!(status.success(), "{signal}: {status}");
        }
        assert_nothing_left(&pair, &scene.socket())?;
    }
    Ok(())
}

/// One of two interfaces vanishes: the other is limited on. Then that one vanishes too.
#[test]
fn interfaces_that_vanish() -> Result<()> {
    let (scene, pair) = (Scene::new()?, pair()?);
    pair.server.ip(&[
        "link", "add", "extra0", "type", "veth", "peer", "name", "extra1",
    ])?;
    let mut child = scene
        .run(&pair.server, &["-i", SERVER_INTERFACE, "-i", "extra0"])
        .stderr(std::process::Stdio::piped())
        .spawn()?;
    wait_for(|| Ok(scene.socket().exists()))?;
    let status = || -> Result<serde_json::Value> {
        let mut command = pair.server.command(BINARY);
        command
            .args(["status", "--json", "--socket"])
            .arg(scene.socket());
        Ok(serde_json::from_slice(
            &crate::succeed(&mut command)?.stdout,
        )?)
    };
    wait_for(|| Ok(status().is_ok()))?;
    pair.server.ip(&["link", "delete", "extra0"])?;
    wait_for(|| Ok(status()?["interfaces"][1]["attached"] == false))?;
    assert_eq!(status()?["interfaces"][0]["attached"], true);

    pair.server.ip(&["link", "delete", SERVER_INTERFACE])?;
    let output = {
        wait_for(|| Ok(child.try_wait()?.is_some()))?;
        child.wait_with_output()?
    };
    assert_eq!(output.status.code(), Some(1));
    let told = crate::text(&output.stderr)?;
    ensure!(told.contains("extra0 has vanished"), "{told}");
    ensure!(told.contains("server0 has vanished"), "{told}");
    ensure!(
        told.ends_with("every interface has vanished: nothing is left to limit\n"),
        "{told}"
    );
    ensure!(!scene.socket().exists());
    Ok(())
}

/// A byte limit that no full-sized frame of the interface could pass.
#[test]
fn jumbo_frames_want_a_larger_burst() -> Result<()> {
    let (scene, pair) = (Scene::new()?, pair()?);
    std::fs::write(
        scene.path("limiter.yaml"),
        "limits: {BytesPerIPAddress: {burst: 2000, count: 2000, period: 1s}}",
    )?;
    pair.server
        .ip(&["link", "set", SERVER_INTERFACE, "mtu", "3000"])?;
    assert_fails(
        &mut scene.run(&pair.server, &["-i", SERVER_INTERFACE]),
        &[
            "limit BytesPerIPAddress has a burst of 2000 bytes, but server0 carries frames of 3014 \
           bytes (MTU 3000), which could then never pass: raise the burst to at least 3014",
        ],
    )?;
    assert_nothing_left(&pair, &scene.socket())
}
