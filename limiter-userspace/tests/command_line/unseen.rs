//! A command without the rights or means to look must not report that no limiter is there while a
//! program enforces.

use std::{fs, os::unix::fs::PermissionsExt as _, path::PathBuf, process::Command};

use anyhow::{Context as _, Result, ensure};
use testbed::{Namespace, SERVER_INTERFACE};

use crate::{
    BINARY, Scene, assert_fails, copy_binary,
    pinned::{Pinned, program},
    succeed,
};

const TEN: &str = "limits: {PacketsPerIPAddress: {burst: 10, count: 1, period: 1h}}\n";

/// Every command that shows or changes the enforced policy.
const COMMANDS: [&[&str]; 17] = [
    &["status"],
    &["status", "--json"],
    &["detach"],
    &["detach", "--json"],
    &["explain", "10.0.0.1"],
    &["offenders"],
    &["top", "--json"],
    &["lists"],
    &["bans"],
    &["ban", "192.0.2.1"],
    &["unban", "192.0.2.1"],
    &["trust", "192.0.2.1"],
    &["untrust", "192.0.2.1"],
    &["trusted"],
    &["sieve"],
    &["stats", "--flat"],
    &["reset", "--all"],
];

/// Makes a binary that any user may run, and a configuration.
fn prepare(scene: &Scene) -> Result<PathBuf> {
    fs::set_permissions(scene.path("."), fs::Permissions::from_mode(0o755))?;
    let copy = scene.path("limiter");
    copy_binary(&copy)?;
    fs::set_permissions(
        scene.path("limiter.yaml"),
        fs::Permissions::from_mode(0o644),
    )?;
    Ok(copy)
}

fn assert_all_fail(
    scene: &Scene,
    pinned: &Pinned,
    mut command: impl FnMut() -> Command,
    expected: &str,
) -> Result<()> {
    let file = scene.path("limiter.yaml");
    let diff = ["check", "--diff", file.to_str().context("a name")?];
    for arguments in COMMANDS.into_iter().chain([&diff[..]]) {
        let mut command = command();
        command
            .args(arguments)
            .arg("--socket")
            .arg(scene.socket())
            .arg("--pin")
            .arg(pinned.pins.path());
        assert_fails(&mut command, &[expected])?;
    }
    ensure!(program(&pinned.pair.server, SERVER_INTERFACE)?.is_some());
    Ok(())
}

#[test]
fn another_user_is_told_to_be_root() -> Result<()> {
    let mut pinned = Pinned::start(TEN)?;
    pinned.limiter.kill()?;
    let scene = Scene::new()?;
    let copy = prepare(&scene)?;
    let server = &pinned.pair.server;
    let as_nobody = || {
        let mut command = server.command("setpriv");
        command
            .args(["--reuid=65534", "--regid=65534", "--clear-groups"])
            .arg(&copy);
        command
    };
    assert_all_fail(
        &scene,
        &pinned,
        as_nobody,
        "cannot look into …: Permission denied (os error 13): run as root (sudo limiter …)",
    )
}

/// `ip netns exec` mounts a sysfs of the namespace over /sys, without a BPF filesystem.
#[test]
fn pins_that_are_hidden() -> Result<()> {
    let mut pinned = Pinned::start(TEN)?;
    pinned.limiter.kill()?;
    let scene = Scene::new()?;
    let copy = prepare(&scene)?;
    let server = &pinned.pair.server;
    let hidden = |mount: &'static str| {
        let copy = copy.clone();
        move || {
            let mut command = server.command("unshare");
            command.args(["--mount", "sh", "-c", mount]).arg(&copy);
            command
        }
    };
    assert_all_fail(
        &scene,
        &pinned,
        hidden(r#"mount -t sysfs sysfs /sys && exec "$0" "$@""#),
        "no daemon answers at …control.sock, and … is not in a BPF filesystem, so pins cannot be \
         seen; but the limiter is attached to server0: run this where the BPF filesystem with its \
         pins is mounted (nsenter --target 1 --mount limiter …)",
    )?;
    assert_all_fail(
        &scene,
        &pinned,
        hidden(r#"mount -t bpf bpf /sys/fs/bpf && exec "$0" "$@""#),
        "no daemon answers at …control.sock, and nothing is pinned in …; but the limiter is attached \
         to server0: name the socket of its daemon with --socket, or its pin directory with --pin; if \
         neither is left, `bpftool link detach id …` detaches it",
    )?;
    // Without the right to query a program's name, no command denies that it is limiter's.
    let as_nobody = || {
        let mut command = server.command("unshare");
        command
            .args(["--mount", "sh", "-c"])
            .arg(
                r#"mount -t sysfs sysfs /sys && exec setpriv --reuid=65534 --regid=65534 \
                   --clear-groups "$0" "$@""#,
            )
            .arg(&copy);
        command
    };
    assert_all_fail(
        &scene,
        &pinned,
        as_nobody,
        "no daemon answers at …control.sock, and … is not in a BPF filesystem, so pins cannot be \
         seen; but server0 has an XDP program (id …), and only root can tell whose it is: run as root \
         (sudo limiter …)",
    )
}

/// Without a limiter, `detach` has nothing to do, and says so.
#[test]
fn nothing_is_nothing() -> Result<()> {
    let scene = Scene::new()?;
    let namespace = Namespace::new()?;
    let mut detach = namespace.command("unshare");
    detach
        .args(["--mount", "sh", "-c"])
        .arg(r#"mount -t sysfs sysfs /sys && exec "$0" "$@""#)
        .args([BINARY, "detach", "--socket"])
        .arg(scene.socket());
    let reported = succeed(&mut detach)?;
    let reported = String::from_utf8(reported.stdout)?;
    ensure!(
        reported.starts_with("no daemon is running, and nothing is pinned in "),
        "{reported}"
    );
    Ok(())
}

/// The pinned program enforces without a daemon, and commands change it.
#[test]
fn buckets_of_what_is_pinned_are_reset() -> Result<()> {
    let mut pinned = Pinned::start(TEN)?;
    pinned.send("10.77.0.2", 6)?;
    pinned.limiter.kill()?;
    ensure!(pinned.remaining("PacketsPerIPAddress", "10.77.0.2")? == 4);
    let mut refund = pinned.with_pins("refund");
    succeed(refund.args(["10.77.0.2", "--limit", "PacketsPerIPAddress", "--cost", "2"]))?;
    ensure!(pinned.remaining("PacketsPerIPAddress", "10.77.0.2")? == 6);
    succeed(pinned.with_pins("reset").arg("10.77.0.2"))?;
    ensure!(pinned.remaining("PacketsPerIPAddress", "10.77.0.2")? == 10);
    for (command, expected) in [
        (
            "reload",
            "no daemon is running, and this needs one: the pins in … still enforce, and \
             `limiter run --pin` takes them over",
        ),
        (
            "confirm",
            "no daemon is running, and this needs one: the pins in … still enforce, and \
             `limiter run --pin` takes them over",
        ),
    ] {
        assert_fails(&mut pinned.with_pins(command), &[expected])?;
    }
    Ok(())
}
