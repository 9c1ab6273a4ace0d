//! Pins that a user removes, and pin directories that are not ours.

use std::{
    fs,
    os::unix::fs::{PermissionsExt as _, chown, symlink},
    path::PathBuf,
};

use anyhow::{Result, ensure};
use limiter_datapath::kernel::pins::ABI;
use nix::sys::signal::Signal;
use testbed::SERVER_INTERFACE;

use crate::{
    Scene, assert_fails, pair,
    pinned::{Pinned, program},
    text, wait_for,
};

const CLIENT: &str = "10.77.0.2";

/// The exit code of a critical status.
const CRITICAL: i32 = 2;

const LIMITED: &str = "limits: {PacketsPerIPAddress: {burst: 1000, count: 1, period: 1h}}\n";

/// A second policy: too slow to return a token during the test, and one source's handshakes prove
/// it.
const OTHERWISE: &str = "limits: {PacketsPerIPAddress: {burst: 999, count: 1, period: 1h}}\n";

/// Returns the exit code of `limiter status --check`, and its output.
fn checked(pinned: &Pinned) -> Result<(Option<i32>, String)> {
    let output = pinned.with_pins("status").arg("--check").output()?;
    Ok((output.status.code(), text(&output.stdout)?.to_owned()))
}

/// Removes the pins below `directory`; returns the files of all former pins.
fn remove(pinned: &Pinned, directory: &str) -> Result<Vec<PathBuf>> {
    let files = pinned.pins.files()?;
    fs::remove_dir_all(pinned.pins.path().join(directory))?;
    Ok(files)
}

#[test]
fn what_is_removed_is_pinned_again() -> Result<()> {
    let mut pinned = Pinned::start(LIMITED)?;
    pinned.send(CLIENT, 4)?;
    let link = pinned.link()?;
    let version = format!("v{ABI}");
    let mut others = [OTHERWISE, LIMITED].iter().cycle();
    for directory in ["", "interfaces", &version, &format!("{version}/kept")] {
        let before = remove(&pinned, directory)?;
        let (code, reported) = checked(&pinned)?;
        ensure!(code == Some(CRITICAL), "without {directory}: {reported}");
        ensure!(
            reported.contains(" is gone: the policy in force is no longer pinned"),
            "{reported}"
        );
        if let Some(other) = others.next() {
            pinned.reload(other)?;
        }
        let after = pinned.pins.files()?;
        ensure!(after.len() == before.len(), "{before:?} became {after:?}");
        let (_, reported) = checked(&pinned)?;
        ensure!(reported.starts_with("LIMITER OK"), "{reported}");
        ensure!(pinned.link()?["id"] == link["id"]);
    }
    // Without a reload, the daemon's own check finds it.
    let stages = pinned.pins.files()?;
    let stages = stages
        .iter()
        .find(|path| path.to_string_lossy().contains("/stages/"));
    let Some(stages) = stages else {
        anyhow::bail!("no stages are pinned");
    };
    fs::remove_file(stages)?;
    wait_for(|| Ok(stages.exists()))?;

    // Also at its end, even directly after a check.
    remove(&pinned, &version)?;
    ensure!(pinned.limiter.terminate()?.success());
    pinned.send(CLIENT, 3)?;
    let status = pinned.limiter.status()?;
    ensure!(
        status["daemon"].is_null() && status["lost_pin"].is_null(),
        "{status:#}"
    );
    ensure!(status["reasons"]["within_limits"] == 7, "{status:#}");
    ensure!(status["reasons"]["missed_tail_call"] == 0, "{status:#}");
    pinned.limiter.restart()?;
    ensure!(pinned.counted("within_limits")? == 7);
    Ok(())
}

/// A program loses its tail calls once the stages are neither pinned nor open.
#[test]
fn without_a_daemon_lost_pins_are_told() -> Result<()> {
    let mut pinned = Pinned::start(LIMITED)?;
    let version = format!("v{ABI}");
    for (directory, said) in [
        (
            format!("{version}/policies/1/stages"),
            "the pin …/stages/… is gone: every packet may be dropped",
        ),
        (
            version,
            "the policy is gone whose programs the pins in … hold",
        ),
    ] {
        pinned.limiter.kill()?;
        remove(
            &pinned,
            &directory.replace("/1/", &format!("/{}/", generation(&pinned)?)),
        )?;
        let (code, reported) = checked(&pinned)?;
        ensure!(code == Some(CRITICAL), "{said}: {reported}");
        for part in said.split('…') {
            ensure!(reported.contains(part), "{reported}");
        }
        pinned.limiter.restart()?;
        let passed = pinned.counted("within_limits")?;
        pinned.send(CLIENT, 3)?;
        ensure!(pinned.counted("within_limits")? == passed + 3);
    }
    Ok(())
}

/// Returns the generation of the only pinned policy.
fn generation(pinned: &Pinned) -> Result<String> {
    let mut policies = fs::read_dir(pinned.pins.path().join(format!("v{ABI}/policies")))?;
    let Some(policy) = policies.next() else {
        anyhow::bail!("no policy is pinned");
    };
    Ok(policy?.file_name().to_string_lossy().into_owned())
}

#[test]
fn what_cannot_be_pinned_again_passes_every_packet() -> Result<()> {
    let mut pinned = Pinned::start(LIMITED)?;
    remove(&pinned, "")?;
    fs::create_dir(pinned.pins.path())?;
    fs::set_permissions(pinned.pins.path(), fs::Permissions::from_mode(0o777))?;
    pinned.limiter.signal(Signal::SIGTERM)?;
    ensure!(!pinned.limiter.wait()?.success());
    ensure!(program(&pinned.pair.server, SERVER_INTERFACE)?.is_none());
    pinned.send(CLIENT, 3)?;
    let log = pinned.limiter.log()?;
    let expected = "the policy in force is no longer pinned, and cannot be pinned again";
    ensure!(log.contains(expected), "{log}");
    ensure!(
        log.contains("it is detached, and every packet passes"),
        "{log}"
    );
    Ok(())
}

#[test]
fn directories_of_others_are_not_taken() -> Result<()> {
    let pair = pair()?;
    let scene = Scene::new()?;
    let pins = testbed::PinDirectory::new()?;
    let (path, pin) = (pins.path(), pins.argument());
    let parent = path.parent().map(PathBuf::from).unwrap_or_default();
    let set = |path: &PathBuf, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode));
    let refused = |expected: &str| {
        let mut run = scene.run(&pair.server, &["-i", SERVER_INTERFACE, &pin]);
        assert_fails(&mut run, &[expected])
    };

    fs::create_dir(&path)?;
    chown(&path, Some(65_001), None)?;
    refused("…/pins belongs to the user 65001, who could put programs of their own in …")?;
    chown(&path, Some(0), None)?;
    for mode in [0o720, 0o702] {
        set(&path, mode)?;
        refused("…/pins may be written by other users (mode …), who could …")?;
    }
    set(&path, 0o755)?;
    set(&parent, 0o777)?;
    refused("… may be written by other users (mode 0777), who could …")?;
    set(&parent, 0o700)?;
    fs::remove_dir(&path)?;
    symlink(&parent, &path)?;
    refused("…/pins is not a directory: remove it, or pin elsewhere with --pin=DIRECTORY")?;
    Ok(fs::remove_file(&path)?)
}
