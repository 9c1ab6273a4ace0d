//! Pins outlive the daemon, and the next daemon takes them over.

use std::{fs, process::Command, thread, time::Duration};

use anyhow::{Result, ensure};
use limiter_datapath::kernel::pins::ABI;
use nix::sys::signal::Signal;
use testbed::{
    CLIENT_INTERFACE, Frame, Limiter, Load, PinDirectory, RawSender, RawSink, SERVER_INTERFACE,
};

use crate::{
    BINARY, Scene, assert_fails, assert_nothing_left, pair,
    pinned::{Pinned, program},
    succeed, text, wait_for,
};

const CLIENT: &str = "10.77.0.2";

/// Too slow to return a token during the test.
const TEN: &str = "limits: {PacketsPerIPAddress: {burst: 10, count: 1, period: 1h}}\n";

#[test]
fn enforcement_goes_on_and_is_taken_over() -> Result<()> {
    for signal in [Signal::SIGKILL, Signal::SIGTERM] {
        let mut pinned = Pinned::start(TEN)?;
        pinned.send(CLIENT, 4)?;
        let link = pinned.link()?;
        pinned.limiter.signal(signal)?;
        let ended = pinned.limiter.wait()?;
        ensure!(ended.success() == (signal == Signal::SIGTERM), "{ended}");

        ensure!(pinned.remaining("PacketsPerIPAddress", CLIENT)? == 6);
        pinned.send(CLIENT, 8)?;
        let status = pinned.limiter.status()?;
        ensure!(status["daemon"].is_null());
        ensure!(status["pinned"] == pinned.pins.path().to_str().unwrap_or_default());
        ensure!(status["interfaces"][0]["attached"] == true);
        ensure!(status["reasons"]["within_limits"] == 10, "{status:#}");
        ensure!(status["reasons"]["over_limit"] == 2, "{status:#}");
        let explanation = pinned.limiter.explain(CLIENT)?;
        ensure!(explanation["limits"][0]["remaining"] == 0);
        ensure!(explanation["last_drop"]["drops"] == 2);
        ensure!(pinned.limiter.offenders()?["offenders"][0]["drops"] == 2);
        let shown = succeed(&mut pinned.with_pins("status"))?;
        let shown = text(&shown.stdout)?;
        ensure!(shown.contains("NO DAEMON is running"), "{shown}");

        pinned.limiter.restart()?;
        let log = pinned.limiter.log()?;
        ensure!(log.contains("taking over policy 1"), "{log}");
        pinned.send(CLIENT, 3)?;
        let status = pinned.limiter.status()?;
        ensure!(status["policy"]["generation"] == 2);
        ensure!(status["reasons"]["within_limits"] == 10, "{status:#}");
        ensure!(status["reasons"]["over_limit"] == 5, "{status:#}");
        ensure!(pinned.limiter.explain(CLIENT)?["last_drop"]["drops"] == 5);
        let taken_over = pinned.link()?;
        ensure!(taken_over["id"] == link["id"], "{link} {taken_over}");
        ensure!(taken_over["prog_id"] != link["prog_id"], "{taken_over}");
    }
    Ok(())
}

#[test]
fn detach_with_and_without_a_daemon() -> Result<()> {
    let mut pinned = Pinned::start(TEN)?;
    let detached = succeed(&mut pinned.with_pins("detach"))?;
    ensure!(
        text(&detached.stdout)? == "detached: the daemon has ended, every packet passes\n",
        "{detached:?}"
    );
    ensure!(pinned.limiter.wait()?.success());
    pinned.assert_detached()?;

    pinned.limiter.restart()?;
    pinned.limiter.kill()?;
    ensure!(program(&pinned.pair.server, SERVER_INTERFACE)?.is_some());
    let detached = succeed(&mut pinned.with_pins("detach"))?;
    let reported = text(&detached.stdout)?;
    ensure!(
        reported.starts_with("detached: removed the pins in ") && reported.lines().count() == 1,
        "{reported}"
    );
    pinned.assert_detached()?;

    let detached = succeed(&mut pinned.with_pins("detach"))?;
    let reported = text(&detached.stdout)?;
    ensure!(
        reported.starts_with("no daemon is running, and nothing is pinned in "),
        "{reported}"
    );
    Ok(())
}

#[test]
fn pins_of_another_limiter_or_namespace_are_not_taken() -> Result<()> {
    let mut pinned = Pinned::start(TEN)?;
    let link = pinned.link()?;
    let scene = Scene::new()?;
    let pin = pinned.pins.argument();
    assert_fails(
        &mut scene.run(&pinned.pair.server, &["-i", SERVER_INTERFACE, &pin]),
        &[
            "another limiter is running with the pins in …: stop it first, or pin elsewhere \
             with --pin=DIRECTORY",
        ],
    )?;
    let mut detach = Command::new(BINARY);
    detach
        .arg("detach")
        .arg("--socket")
        .arg(scene.socket())
        .arg("--pin")
        .arg(pinned.pins.path());
    assert_fails(
        &mut detach,
        &["another limiter is running with the pins in …"],
    )?;
    ensure!(pinned.link()? == link);
    ensure!(pinned.limiter.status()?["policy"]["generation"] == 1);

    // Interfaces of different namespaces share indices, and must not be mistaken for each other.
    pinned.limiter.kill()?;
    let elsewhere = pair()?;
    assert_fails(
        &mut scene.run(&elsewhere.server, &["-i", SERVER_INTERFACE, &pin]),
        &[
            "the pins in … are for interfaces of another network namespace: run this limiter \
             there, or pin elsewhere with --pin=DIRECTORY",
        ],
    )?;
    ensure!(program(&elsewhere.server, SERVER_INTERFACE)?.is_none());
    ensure!(program(&pinned.pair.server, SERVER_INTERFACE)?.is_some());
    Ok(())
}

#[test]
fn only_a_bpf_filesystem_takes_pins() -> Result<()> {
    let (scene, pair) = (Scene::new()?, pair()?);
    let directory = scene.path("pins");
    let pin = format!("--pin={}", directory.display());
    assert_fails(
        &mut scene.run(&pair.server, &["-i", SERVER_INTERFACE, &pin]),
        &[
            "…/pins is not in a BPF filesystem, where programs must be pinned: mount one \
             (mount -t bpf bpf /sys/fs/bpf), or name a directory in one with --pin=DIRECTORY",
        ],
    )?;
    ensure!(!directory.exists());
    assert_nothing_left(&pair, &scene.socket())
}

#[test]
fn a_bad_start_changes_nothing() -> Result<()> {
    let mut pinned = Pinned::start(TEN)?;
    pinned.limiter.kill()?;
    let (files, link, status) = (
        pinned.pins.files()?,
        pinned.link()?,
        pinned.limiter.status()?,
    );
    pinned
        .limiter
        .configure("limits: {Unheard: {burst: 1}}\n")?;
    let refused = pinned.limiter.run().output()?;
    ensure!(refused.status.code() == Some(1), "{refused:?}");
    ensure!(
        pinned
            .limiter
            .run()
            .args(["-i", "eth9"])
            .output()?
            .status
            .code()
            == Some(1)
    );
    ensure!(pinned.pins.files()? == files);
    ensure!(pinned.link()? == link);
    ensure!(pinned.limiter.status()? == status);

    // Where nothing was pinned before, nothing is pinned now.
    let (scene, pins) = (Scene::new()?, PinDirectory::new()?);
    let pin = pins.argument();
    let refused = |arguments: &[&str], expected: &str| -> Result<()> {
        let arguments = [arguments, &[&pin]].concat();
        assert_fails(&mut scene.run(&pinned.pair.server, &arguments), &[expected])?;
        ensure!(!pins.path().exists(), "{:?}", pins.files()?);
        Ok(())
    };
    refused(
        &["-i", "eth9"],
        "no interface is named 'eth9'; there are: lo, server0",
    )?;
    refused(
        &["-i", "lo", "--mode", "native"],
        "lo cannot run XDP in native mode (…",
    )
}

/// Its buckets are unreadable, but it enforces until the new program is attached.
#[test]
fn another_versions_program_is_taken_over() -> Result<()> {
    let mut pinned = Pinned::start(TEN)?;
    let sink = RawSink::new(&pinned.pair.server, SERVER_INTERFACE)?;
    pinned.send(CLIENT, 4)?;
    let link = pinned.link()?;
    pinned.limiter.kill()?;
    let of_version = |version: &str| pinned.pins.path().join(version);
    fs::rename(of_version(&format!("v{ABI}")), of_version("v0"))?;
    assert_fails(
        &mut pinned.with_pins("status"),
        &[
            "the pins in … enforce a policy that this version of the limiter cannot read: \
             `limiter run --pin` takes them over, `limiter detach` removes them",
        ],
    )?;

    let sender = RawSender::new(&pinned.pair.client, CLIENT_INTERFACE)?;
    let progress = sender.progress();
    let frame = Frame::new(CLIENT.parse()?, "10.77.0.1".parse()?).udp(1, 2, &[0; 58])?;
    let load = Load::saturating(Duration::from_mins(2)).at_most(1_000_000);
    let sending = thread::spawn(move || sender.send(load, &[frame]));
    let restarted = pinned.limiter.restart();
    // The new program judges some of the packets, too.
    let before = progress.sent();
    let judged = wait_for(|| Ok(progress.sent() > before + 1_000 || sending.is_finished()));
    progress.stop();
    let sent = sending.join().expect("the sender does not panic")?;
    restarted?;
    judged?;

    let arrived = sink.finish()?.of(CLIENT.parse()?).packets;
    ensure!(arrived == 20, "{arrived} passed of {}", sent.packets);
    let log = pinned.limiter.log()?;
    let warnings: Vec<_> = log.lines().filter(|line| line.contains("WARN")).collect();
    ensure!(
        matches!(warnings[..], [reported] if reported.contains("the pins of ABI v0, of buckets, ")),
        "{log}"
    );
    let taken_over = pinned.link()?;
    ensure!(taken_over["id"] == link["id"], "{link} {taken_over}");
    ensure!(taken_over["prog_id"] != link["prog_id"], "{taken_over}");
    ensure!(!pinned.pins.path().join("v0").exists());
    Ok(())
}

/// Without a daemon that saw it vanish and return, it counts as a new interface, with the old
/// buckets.
#[test]
fn an_interface_that_came_back_is_limited_again() -> Result<()> {
    let mut pinned = Pinned::start_with(
        &format!("interfaces: [{SERVER_INTERFACE}, extra0]\n{TEN}"),
        &[],
    )?;
    let server = &pinned.pair.server;
    let add = || {
        server.ip_batch(
            "link add extra0 type veth peer name extra1\nlink set extra0 up\n\
             link set extra1 up\n",
        )
    };
    let frame = Frame::new(CLIENT.parse()?, "10.77.0.1".parse()?).udp(1, 2, &[0; 58])?;
    let send = || RawSender::new(server, "extra1")?.send_frames(&vec![frame.clone(); 6]);
    let attached = |limiter: &Limiter| -> Result<_> {
        Ok(limiter.status()?["interfaces"][1]["attached"].clone())
    };
    add()?;
    wait_for(|| Ok(attached(&pinned.limiter)? == true))?;
    send()?;
    wait_for(|| Ok(pinned.remaining("PacketsPerIPAddress", CLIENT)? == 4))?;
    pinned.limiter.kill()?;
    server.ip(&["link", "delete", "extra0"])?;
    ensure!(attached(&pinned.limiter)? == false);
    add()?;
    pinned.limiter.restart()?;
    ensure!(attached(&pinned.limiter)? == true);
    send()?;
    wait_for(|| Ok(pinned.counted("over_limit")? == 2))
}
