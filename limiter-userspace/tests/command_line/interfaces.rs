//! Interfaces that are missing, already taken, vanishing or slow to appear.

use anyhow::{Result, ensure};
use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use std::{fs, path::Path};
use testbed::{Limiter, SERVER_INTERFACE};

use crate::{
    BINARY, GOOD, Scene, assert_fails, assert_nothing_left, pair,
    pinned::{assert_metric, metrics},
    wait_for,
};

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

/// The daemon may be older than the interface, so it waits for one that its file names.
#[test]
fn check_names_an_interface_that_is_not_there_yet() -> Result<()> {
    let (scene, pair) = (Scene::new()?, pair()?);
    let file = scene.path("waiting.yaml");
    fs::write(
        &file,
        format!("interfaces: [{SERVER_INTERFACE}, eth9]\n{GOOD}"),
    )?;
    let mut check = pair.server.command(BINARY);
    let checked = check.args(["check", "-c"]).arg(file).output()?;
    let reported = String::from_utf8(checked.stderr)?;
    let expected = "no interface is named 'eth9' here yet: the daemon waits for it\n";
    ensure!(
        reported.contains(expected) && checked.status.success(),
        "{reported}"
    );
    ensure!(!reported.contains("'server0'"), "{reported}");
    Ok(())
}

/// The kernel does not run a generic program beside a native one.
#[test]
fn another_program_is_named_whatever_the_modes() -> Result<()> {
    let (scene, pair) = (Scene::new()?, pair()?);
    for mode_of_first in ["native", "generic"] {
        let first = Limiter::start(
            Path::new(BINARY),
            &pair.server,
            GOOD,
            &["-i", SERVER_INTERFACE, "--mode", mode_of_first],
        )?;
        let reported = "server0 already has the XDP program 'limiter' (id …), and an interface runs \
                    only one, in any mode: another limiter holds it: `limiter detach` ends it, …, or `bpftool link detach id …` if its pins are gone";
        for mode in ["auto", "native", "generic"] {
            assert_fails(
                &mut scene.run(&pair.server, &["-i", SERVER_INTERFACE, "--mode", mode]),
                &[reported],
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
            // A killed daemon leaves its socket; the next daemon replaces it.
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

/// Both interfaces vanish. The one that appears again is limited again.
#[test]
fn interfaces_that_come_and_go() -> Result<()> {
    let pair = pair()?;
    let add_extra = || {
        let peer = ["type", "veth", "peer", "name", "extra1"];
        pair.server
            .ip(&[&["link", "add", "extra0"], &peer[..]].concat())
    };
    add_extra()?;
    let limiter = Limiter::start(
        Path::new(BINARY),
        &pair.server,
        GOOD,
        &[
            "-i",
            SERVER_INTERFACE,
            "-i",
            "extra0",
            "--log-format",
            "human",
        ],
    )?;
    let attached = |index: usize| -> Result<bool> {
        Ok(limiter.status()?["interfaces"][index]["attached"] == true)
    };
    ensure!(attached(0)? && attached(1)?);
    let metric = |name: &str, is: u8| {
        let line = format!(r#"limiter_interface_attached{{interface="{name}"}} {is}"#);
        assert_metric(&pair.server, &line)
    };
    metric("extra0", 1)?;
    let mode = r#"limiter_interface_mode{interface="extra0",mode="native"} 1"#;
    assert_metric(&pair.server, mode)?;
    pair.server.ip(&["link", "delete", "extra0"])?;
    wait_for(|| Ok(!attached(1)?))?;
    ensure!(attached(0)?);
    metric("extra0", 0)?;
    ensure!(!metrics(&pair.server)?.contains(mode));
    metric(SERVER_INTERFACE, 1)?;
    pair.server.ip(&["link", "delete", SERVER_INTERFACE])?;
    wait_for(|| Ok(!attached(0)?))?;
    let shown = limiter.show(&["status"])?;
    ensure!(
        shown.contains("extra0: NOT attached: the interface has vanished"),
        "{shown}"
    );

    add_extra()?;
    wait_for(|| attached(1))?;
    let link = pair.server.ip(&["-details", "link", "show", "extra0"])?;
    ensure!(link.contains("xdp"), "{link}");
    for reported in [
        "ERROR extra0 has vanished",
        "ERROR server0 has vanished",
        "INFO attached to extra0",
    ] {
        limiter.wait_for_log(reported)?;
    }
    ensure!(limiter.stop()?.success());
    Ok(())
}

/// Another program on one interface does not keep the other interface from being limited.
#[test]
fn one_of_those_that_appear_is_taken() -> Result<()> {
    let pair = pair()?;
    let server = &pair.server;
    let add = |name: &str| server.ip(&["link", "add", name, "type", "veth"]);
    add("other0")?;
    let start = |configuration: &str, more: &[&str]| {
        let arguments = [&["--metrics", "off", "--log-format", "human"], more].concat();
        Limiter::start(Path::new(BINARY), server, configuration, &arguments)
    };
    let _holder = start(GOOD, &["-i", "other0"])?;
    let waiting = start(&format!("interfaces: [taken0, free0]\n{GOOD}"), &[])?;
    server.ip(&["link", "set", "other0", "name", "taken0"])?;
    wait_for(|| {
        Ok(waiting
            .log()?
            .contains("taken0 already has the XDP program"))
    })?;
    add("free0")?;
    wait_for(|| Ok(waiting.log()?.contains("attached to free0")))?;
    ensure!(waiting.status()?["interfaces"][0]["attached"] == true);
    // The daemon retried the interface, but logged it once.
    let log = waiting.log()?;
    ensure!(
        log.matches("taken0 already has the XDP program").count() == 1,
        "{log}"
    );
    Ok(())
}

/// An interface that the configuration names may appear later.
#[test]
fn interfaces_of_the_configuration_are_waited_for() -> Result<()> {
    let pair = pair()?;
    let limiter = Limiter::start(
        Path::new(BINARY),
        &pair.server,
        &format!("interfaces: [later0]\n{GOOD}"),
        &[],
    )?;
    assert_eq!(limiter.status()?["interfaces"][0]["attached"], false);
    let shown = limiter.show(&["status"])?;
    ensure!(
        shown.contains("later0: NOT attached: waiting for it to appear"),
        "{shown}"
    );
    let peer = ["type", "veth", "peer", "name", "later1"];
    pair.server
        .ip(&[&["link", "add", "later0"], &peer[..]].concat())?;
    wait_for(|| Ok(limiter.status()?["interfaces"][0]["attached"] == true))?;
    ensure!(limiter.stop()?.success());
    Ok(())
}

/// A full-sized frame of the interface could never pass such a byte limit.
#[test]
fn jumbo_frames_want_a_larger_burst() -> Result<()> {
    let (scene, pair) = (Scene::new()?, pair()?);
    fs::write(
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

/// `check` and `reload` refuse the same interfaces as `run`.
#[test]
fn check_run_and_reload_refuse_the_same_interfaces() -> Result<()> {
    let (scene, pair) = (Scene::new()?, pair()?);
    let property = ["property", "add", "dev", SERVER_INTERFACE, "altname"];
    pair.server
        .ip(&[&["link"], &property[..], &["uplink"]].concat())?;
    let mut running = Limiter::start(
        Path::new(BINARY),
        &pair.server,
        &format!("interfaces: lo\n{GOOD}"),
        &["--metrics", "off", "--log-format", "human"],
    )?;
    let many: Vec<_> = (0..65).map(|number| format!("eth{number}")).collect();
    for (interfaces, reported) in [
        (
            many.join(", "),
            "65 interfaces are given, but at most 64 can be served",
        ),
        (
            format!("{SERVER_INTERFACE}, uplink"),
            "'server0' and 'uplink' are names of one interface: name it once",
        ),
    ] {
        let configuration = format!("interfaces: [{interfaces}]\n{GOOD}");
        fs::write(scene.path("limiter.yaml"), &configuration)?;
        let mut check = pair.server.command(BINARY);
        check.args(["check", "-c"]).arg(scene.path("limiter.yaml"));
        assert_fails(&mut check, &[reported])?;
        assert_fails(&mut scene.run(&pair.server, &[]), &[reported])?;
        running.configure(&configuration)?;
        assert_fails(&mut running.command(&["reload"]), &[reported])?;
    }
    running.check()
}
