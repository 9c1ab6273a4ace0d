//! Bans outlive reloads, daemons and reboots.

use std::path::Path;

use anyhow::{Result, ensure};
use serde_json::json;
use testbed::{Limiter, SERVER_INTERFACE};

use super::{CLIENT, NEIGHBOUR, is_banned, listed, pair, reported};
use crate::{BINARY, GOOD, pinned::Pinned, succeed, text, wait_for};

#[test]
fn pinned_bans_are_there_after_a_restart_and_a_crash() -> Result<()> {
    let mut pinned = Pinned::start(GOOD)?;
    let shown = succeed(pinned.with_pins("ban").args([CLIENT, "--reason", "abuse"]))?;
    let expected = format!("{CLIENT} is banned until it is lifted\n");
    assert_eq!(text(&shown.stdout)?, expected);
    ensure!(pinned.limiter.terminate()?.success());
    pinned.limiter.restart()?;
    pinned.limiter.kill()?;
    pinned.limiter.restart()?;
    ensure!(is_banned(&pinned.pair, &pinned.limiter, CLIENT)?);
    let client = format!("{CLIENT}/32");
    assert_eq!(listed(&pinned, "reason")?, [(client, json!("abuse"))]);
    wait_for(|| Ok(pinned.limiter.status()?["bans"]["ipv4"] == 1))
}

/// Without pins, a daemon starts as after a reboot.
#[test]
fn the_state_file_brings_bans_back_before_the_first_packet() -> Result<()> {
    let (pair, directory) = (pair()?, tempfile::tempdir()?);
    let state = directory.path().join("state");
    let configuration = |more: &str| format!("state: {}\n{more}{GOOD}", state.display());
    let arguments = ["-i", SERVER_INTERFACE, "--metrics", "off"];
    let arguments = [&arguments[..], &["--log-format", "human"]].concat();
    let binary = Path::new(BINARY);
    let mut limiter = Limiter::start(binary, &pair.server, &configuration(""), &arguments)?;
    let shown = limiter.show(&[
        "ban",
        CLIENT,
        "fd78::/64",
        "--for",
        "1h",
        "--reason",
        "abuse",
    ])?;
    ensure!(!shown.contains("bans end with the daemon"), "{shown}");
    limiter.show(&["ban", NEIGHBOUR, "--for", "1ms"])?;
    limiter.show(&["ban", "198.51.100.0/24"])?;
    limiter.show(&["ban", "198.51.100.0/24"])?;
    let fields = |limiter: &Limiter| {
        let json = limiter.show(&["bans", "--json"])?;
        anyhow::Ok((
            reported(&json, "reason")?,
            reported(&json, "times")?,
            reported(&json, "limit")?,
        ))
    };
    let before = fields(&limiter)?;
    assert_eq!(before.0.len(), 3);
    assert_eq!(before.1[1], ("198.51.100.0/24".to_owned(), json!(2)));
    ensure!(limiter.terminate()?.success());

    limiter.restart()?;
    let log = limiter.log()?;
    let (banned, attached) = (
        log.find("the saved bans are restored (bans: 3)"),
        log.rfind("attached to server0"),
    );
    ensure!(banned.is_some() && banned < attached, "{log}");
    assert_eq!(fields(&limiter)?, before);
    for (source, expected) in [
        (CLIENT, true),
        ("fd78::9", true),
        ("198.51.100.200", true),
        (NEIGHBOUR, false),
    ] {
        assert_eq!(is_banned(&pair, &limiter, source)?, expected, "{source}");
    }
    let json = limiter.show(&["bans", CLIENT, "--json"])?;
    let left = reported(&json, "ends_in_ns")?[0]
        .1
        .as_u64()
        .unwrap_or_default();
    ensure!(
        (3_000_000_000_000..3_600_000_000_000).contains(&left),
        "{left}"
    );
    wait_for(|| Ok(limiter.status()?["daemon"]["state"]["bans"] == 3))?;
    ensure!(limiter.stop()?.success());
    Ok(())
}
