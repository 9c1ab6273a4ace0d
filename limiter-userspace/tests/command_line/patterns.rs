//! Patterns of interfaces' names: matching interfaces come and go while the daemon runs.

use std::{fs, path::Path};

use anyhow::{Context as _, Result, ensure};
use nix::sys::signal::Signal;
use serde_json::Value;
use testbed::{Frame, Limiter, Namespace, SERVER_INTERFACE, Tap};

use crate::{
    BINARY, GOOD, Scene, assert_fails, pair,
    pinned::{Pinned, assert_metric, program},
    succeed, text, wait_for,
};

/// Too slow to return a token during the test.
const TEN: &str = "limits: {PacketsPerIPAddress: {burst: 10, count: 1, period: 1h}}\n";

/// The device type of raw 802.11 frames (linux/if_arp.h), which limiter cannot read.
const RADIO: libc::c_ulong = 802;

/// Returns the names of the limited interfaces.
fn limited(limiter: &Limiter) -> Result<Vec<String>> {
    let status = limiter.status()?;
    let interfaces = status["interfaces"].as_array().context("no interfaces")?;
    let attached = interfaces.iter().filter(|found| found["attached"] == true);
    let mut names: Vec<_> = attached
        .filter_map(|found| found["name"].as_str())
        .collect();
    names.sort_unstable();
    Ok(names.into_iter().map(str::to_owned).collect())
}

fn wait_until_limited(limiter: &Limiter, expected: &[&str]) -> Result<()> {
    let mut found = Vec::new();
    wait_for(|| {
        found = limited(limiter)?;
        Ok(found == expected)
    })
    .with_context(|| format!("{found:?} instead of {expected:?}"))
}

/// Sends packets from one address.
fn send(tap: &mut Tap, packets: usize) -> Result<()> {
    let frame = Frame::new("10.78.0.2".parse()?, "10.78.0.1".parse()?).udp(1, 2, &[0; 58])?;
    (0..packets).try_for_each(|_| tap.send(&frame))
}

/// Returns how many packets a limit passed and dropped.
fn decided(limiter: &Limiter) -> Result<[Option<u64>; 2]> {
    let limit = &limiter.status()?["limits"]["PacketsPerIPAddress"];
    Ok(["passed_packets", "dropped_packets"].map(|field| limit[field].as_u64()))
}

fn has_program(namespace: &Namespace, interface: &str) -> Result<bool> {
    Ok(program(namespace, interface)?.is_some())
}

#[test]
fn interfaces_that_a_pattern_selects_come_and_go() -> Result<()> {
    let mut pinned = Pinned::start_with(&format!("interfaces: vnet*\n{TEN}"), &[])?;
    let server = pinned.pair.server.clone();
    let status = pinned.limiter.status()?;
    ensure!(
        status["interfaces"] == Value::Array(Vec::new()),
        "{status:#}"
    );
    let shown = succeed(&mut pinned.limiter.command(&["status"]))?;
    let shown = text(&shown.stdout)?;
    ensure!(
        shown.contains("vnet*: waiting for an interface of such a name"),
        "{shown}"
    );
    succeed(&mut pinned.limiter.command(&["status", "--check"]))?;
    // Bans need no interface.
    pinned.limiter.show(&["ban", "192.0.2.1"])?;

    let mut tap = Tap::new(&server, "vnet0")?;
    wait_until_limited(&pinned.limiter, &["vnet0"])?;
    send(&mut tap, 15)?;
    ensure!(decided(&pinned.limiter)? == [Some(10), Some(5)]);
    assert_metric(
        &server,
        r#"limiter_interface_attached{interface="vnet0"} 1"#,
    )?;
    drop(tap);
    wait_until_limited(&pinned.limiter, &[])?;
    let shown = succeed(&mut pinned.limiter.command(&["status"]))?;
    let shown = text(&shown.stdout)?;
    ensure!(
        shown.contains("vnet*: waiting") && !shown.contains("vanished"),
        "{shown}"
    );
    pinned.limiter.wait_for_log("vnet0 is gone")?;
    ensure!(!pinned.limiter.log()?.contains("vnet0 has vanished"));

    let taps = ["vnet1", "vnet2"].map(|name| Tap::new(&server, name));
    let [first, second] = taps;
    let (mut first, second) = (first?, second?);
    wait_until_limited(&pinned.limiter, &["vnet1", "vnet2"])?;
    // While no daemon runs, the program and its buckets stay.
    pinned.limiter.signal(Signal::SIGKILL)?;
    pinned.limiter.wait()?;
    send(&mut first, 2)?;
    ensure!(decided(&pinned.limiter)? == [Some(10), Some(7)]);
    pinned.limiter.restart()?;
    ensure!(limited(&pinned.limiter)? == ["vnet1", "vnet2"]);
    send(&mut first, 2)?;
    ensure!(decided(&pinned.limiter)? == [Some(10), Some(9)]);
    // An interface that vanishes while no daemon runs leaves the status at once.
    pinned.limiter.signal(Signal::SIGKILL)?;
    pinned.limiter.wait()?;
    drop(second);
    wait_for(|| Ok(server.ip(&["link", "show", "vnet2"]).is_err()))?;
    let shown = succeed(&mut pinned.with_pins("status"))?;
    ensure!(!text(&shown.stdout)?.contains("vnet2"), "{shown:?}");
    pinned.limiter.restart()?;
    ensure!(limited(&pinned.limiter)? == ["vnet1"]);

    pinned.reload(&format!("interfaces: [vnet*, {SERVER_INTERFACE}]\n{TEN}"))?;
    ensure!(limited(&pinned.limiter)? == ["server0", "vnet1"]);
    pinned.reload(&format!("interfaces: {SERVER_INTERFACE}\n{TEN}"))?;
    ensure!(limited(&pinned.limiter)? == [SERVER_INTERFACE]);
    ensure!(!has_program(&server, "vnet1")?);
    pinned.reload(&format!("interfaces: v?et*\n{TEN}"))?;
    ensure!(limited(&pinned.limiter)? == ["vnet1"]);
    ensure!(!has_program(&server, SERVER_INTERFACE)?);
    Ok(())
}

/// Names and other names count, as they are now.
#[test]
fn an_interface_is_limited_as_long_as_a_pattern_selects_it() -> Result<()> {
    let pair = pair()?;
    let server = &pair.server;
    let limiter = Limiter::start(
        Path::new(BINARY),
        server,
        GOOD,
        &["--log-format", "human", "-i", "vnet*", "-i", "l?"],
    )?;
    server.ip_batch("link add vnet0 type veth peer name peer0\n")?;
    wait_until_limited(&limiter, &["vnet0"])?;
    server.ip(&["link", "set", "vnet0", "name", "vnet5"])?;
    wait_until_limited(&limiter, &["vnet5"])?;
    server.ip(&["link", "set", "vnet5", "name", "other0"])?;
    wait_until_limited(&limiter, &[])?;
    ensure!(!has_program(server, "other0")?);
    server.ip(&[
        "link",
        "property",
        "add",
        "dev",
        "other0",
        "altname",
        "vnetwork-of-a-guest",
    ])?;
    wait_until_limited(&limiter, &["other0"])?;
    // A container's end of a veth pair is limited only until it moves into the container.
    let container = Namespace::new()?;
    server.ip(&["link", "set", "other0", "netns", &container.path()])?;
    wait_until_limited(&limiter, &[])?;
    ensure!(!has_program(&container, "other0")?);
    ensure!(!has_program(server, "lo")?);
    ensure!(limiter.stop()?.success());
    Ok(())
}

#[test]
fn those_that_cannot_be_limited_are_passed_over_unless_they_are_named() -> Result<()> {
    let (scene, pair) = (Scene::new()?, pair()?);
    let server = &pair.server;
    server.ip_batch(
        "link add vnet1 type ifb\n\
         link add vnet2 type veth peer name other2\n\
         link add vnet3 type bridge\n\
         link add vnet4 type veth peer name other4\n\
         link set vnet4 master vnet3\n\
         link add vnet5 type veth peer name other5\n",
    )?;
    let _radio = Tap::tun(server, "vnet0", RADIO)?;
    let arguments = ["--metrics", "off", "--log-format", "human"];
    let holder = Limiter::start(
        Path::new(BINARY),
        server,
        GOOD,
        &[&arguments[..], &["-i", "vnet2"]].concat(),
    )?;
    let configuration = format!("interfaces: vnet*\n{GOOD}");
    let limiter = Limiter::start(Path::new(BINARY), server, &configuration, &arguments)?;
    wait_until_limited(&limiter, &["vnet3", "vnet5"])?;
    let status = limiter.status()?;
    let misfits = &status["daemon"]["misfits"];
    let misfits = misfits.as_object().context("no misfits")?;
    ensure!(
        misfits.keys().eq(["vnet0", "vnet1", "vnet2", "vnet4"]),
        "{misfits:#?}"
    );
    let shown = limiter.show(&["status"])?;
    fs::write(scene.path("limiter.yaml"), &configuration)?;
    let mut check = server.command(BINARY);
    check.args(["check", "-c"]).arg(scene.path("limiter.yaml"));
    let checked = succeed(&mut check)?;
    let (log, checked) = (limiter.log()?, text(&checked.stderr)?.to_owned());
    for (interface, reason) in [
        ("vnet0", "the frames of vnet0"),
        ("vnet1", "no frame would be limited on vnet1"),
        ("vnet4", "frames that arrive on vnet4 arrive on vnet3, too"),
    ] {
        let reported = format!("{interface} is passed over, though a pattern selects it: {reason}");
        for output in [&shown, &log, &checked] {
            ensure!(output.contains(&reported), "{reported}: {output}");
        }
        ensure!(log.matches(&reported).count() == 1, "{log}");
        // No program is allowed below a device that has one: vnet4 is such a device.
        let named = scene.run(server, &["-i", interface]).output()?;
        ensure!(!named.status.success(), "{interface} is limited");
    }
    assert_fails(
        &mut scene.run(server, &["-i", "vnet2"]),
        &["vnet2 already has the XDP program …"],
    )?;
    // An interface that has become free is limited.
    ensure!(holder.stop()?.success());
    wait_until_limited(&limiter, &["vnet2", "vnet3", "vnet5"])?;
    Ok(())
}

/// Named interfaces keep their room, whether they exist or not.
#[test]
fn of_too_many_interfaces_the_last_wait_for_room() -> Result<()> {
    let pair = pair()?;
    let server = &pair.server;
    let add =
        |name: &str| server.ip_batch(&format!("link add {name} type veth peer name x{name}\n"));
    add("vnet0")?;
    let named: Vec<_> = (0..62).map(|number| format!("eth{number}")).collect();
    let limiter = Limiter::start(
        Path::new(BINARY),
        server,
        &format!("interfaces: [vnet*, {}]\n{GOOD}", named.join(", ")),
        &["--log-format", "human"],
    )?;
    ensure!(limited(&limiter)? == ["vnet0"]);
    for name in ["vnet1", "vnet2"] {
        add(name)?;
        limiter.wait_for_log(name)?;
    }
    let reported = "vnet2 is passed over, though a pattern selects it: no room to limit vnet2: \
                at most 64 interfaces are limited at a time";
    limiter.wait_for_log(reported)?;
    ensure!(limited(&limiter)? == ["vnet0", "vnet1"]);
    ensure!(limiter.show(&["status"])?.contains(reported));
    assert_metric(server, r#"limiter_interface_attached{interface="vnet2"} 0"#)?;
    // A reload changes nothing.
    limiter.show(&["reload"])?;
    ensure!(limited(&limiter)? == ["vnet0", "vnet1"]);
    add("eth7")?;
    wait_until_limited(&limiter, &["eth7", "vnet0", "vnet1"])?;
    server.ip(&["link", "delete", "vnet0"])?;
    wait_until_limited(&limiter, &["eth7", "vnet1", "vnet2"])?;
    ensure!(!limiter.show(&["status"])?.contains("passed over"));
    ensure!(limiter.stop()?.success());
    Ok(())
}

/// Debts of an interface's own buckets are saved under its name.
#[test]
fn a_selected_interface_owes_after_a_restart_what_it_owed() -> Result<()> {
    let pair = pair()?;
    let mut tap = Tap::new(&pair.server, "vnet0")?;
    let configuration =
        format!("interfaces: vnet*\nstate: state\nbuckets: {{scope: interface}}\n{TEN}");
    let mut limiter = Limiter::start(Path::new(BINARY), &pair.server, &configuration, &[])?;
    send(&mut tap, 10)?;
    ensure!(decided(&limiter)? == [Some(10), Some(0)]);
    limiter.signal(Signal::SIGTERM)?;
    ensure!(limiter.wait()?.success());
    limiter.restart()?;
    ensure!(limited(&limiter)? == ["vnet0"]);
    send(&mut tap, 3)?;
    ensure!(decided(&limiter)? == [Some(0), Some(3)]);
    Ok(())
}
