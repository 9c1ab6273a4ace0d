//! Bans across policies with a larger or smaller capacity for bans.

use anyhow::{Result, ensure};
use serde_json::json;

use super::{CLIENT, NEIGHBOUR, is_banned, listed};
use crate::{GOOD, assert_fails, pinned::Pinned, succeed, wait_for};

fn room_for(capacity: u32) -> String {
    format!("bans: {{capacity: {capacity}}}\n{GOOD}")
}

fn ban_1100(pinned: &Pinned) -> Result<()> {
    let addresses: Vec<_> = (0..1_100)
        .map(|number| format!("198.18.{}.{}", number / 256, number % 256))
        .collect();
    succeed(pinned.with_pins("ban").args(addresses)).map(drop)
}

#[test]
fn a_reload_with_more_or_less_room_keeps_them() -> Result<()> {
    let mut pinned = Pinned::start(&room_for(2048))?;
    succeed(pinned.with_pins("ban").arg(CLIENT))?;
    for capacity in [4096, 1024] {
        pinned.reload(&room_for(capacity))?;
        ensure!(
            is_banned(&pinned.pair, &pinned.limiter, CLIENT)?,
            "{capacity}"
        );
        assert_eq!(pinned.limiter.status()?["bans"]["capacity"], capacity);
    }
    // The count is right, too.
    succeed(pinned.with_pins("ban").arg(NEIGHBOUR))?;
    assert_eq!(pinned.limiter.status()?["bans"]["ipv4"], 2);
    ensure!(pinned.limiter.terminate()?.success());
    pinned.limiter.restart()?;
    let expected = [CLIENT, NEIGHBOUR].map(|address| (format!("{address}/32"), json!(1)));
    assert_eq!(listed(&pinned, "times")?, expected);
    Ok(())
}

#[test]
fn a_reload_without_room_for_them_is_refused() -> Result<()> {
    let pinned = Pinned::start(&room_for(2048))?;
    ban_1100(&pinned)?;
    pinned.limiter.configure(&room_for(1024))?;
    assert_fails(
        &mut pinned.limiter.command(&["reload"]),
        &[
            "there are 1100 bans, and `bans: {capacity: 1024}` has no room for them: raise it to at \
           least 1100, or lift some (limiter bans, limiter unban)",
        ],
    )?;
    let status = pinned.limiter.status()?;
    assert_eq!(status["policy"]["generation"], 1);
    assert_eq!(
        status["bans"],
        json!({"capacity": 2048, "ipv4": 1100, "ipv6": 0})
    );
    ensure!(is_banned(&pinned.pair, &pinned.limiter, "198.18.4.75")?);
    Ok(())
}

#[test]
fn there_is_room_for_as_many_as_configured() -> Result<()> {
    let pinned = Pinned::start(&room_for(1024))?;
    let mut addresses: Vec<_> = (0..1_024)
        .map(|number| format!("198.18.{}.{}", number / 256, number % 256))
        .collect();
    succeed(pinned.with_pins("ban").args(&addresses))?;
    let full = "is not banned: there is no room for more than 1024 bans: raise `bans: {capacity: \
                …}`, or lift some";
    let reported = format!("{CLIENT} {full}");
    assert_fails(pinned.with_pins("ban").arg(CLIENT), &[&reported])?;
    // Banning a banned address again takes no room, and lifting a ban frees its room.
    addresses.truncate(2);
    succeed(
        pinned
            .with_pins("ban")
            .args(&addresses)
            .args(["--for", "1s"]),
    )?;
    succeed(pinned.with_pins("unban").arg(&addresses[0]))?;
    succeed(pinned.with_pins("ban").arg(CLIENT))?;
    assert_fails(pinned.with_pins("ban").arg(NEIGHBOUR), &["…"])?;
    // An ended ban frees its room, too, though its duration is remembered.
    wait_for(|| Ok(pinned.limiter.status()?["bans"]["ipv4"] == 1023))?;
    succeed(pinned.with_pins("ban").arg(NEIGHBOUR))?;
    ensure!(is_banned(&pinned.pair, &pinned.limiter, NEIGHBOUR)?);
    Ok(())
}

/// A ban or an unban made under a policy awaiting confirmation holds after the revert.
#[test]
fn a_policy_that_is_reverted_leaves_them_as_they_are() -> Result<()> {
    const LIFTED: &str = "10.77.0.4";
    for killed in [false, true] {
        let mut pinned = Pinned::start(&room_for(2048))?;
        succeed(pinned.with_pins("ban").args([CLIENT, LIFTED, "fd78::/64"]))?;
        ensure!(pinned.limiter.terminate()?.success());
        pinned.limiter.configure(&room_for(4096))?;
        pinned.restart_with(&["--confirm", if killed { "60s" } else { "8s" }])?;
        succeed(pinned.with_pins("ban").arg(NEIGHBOUR))?;
        succeed(pinned.with_pins("unban").args([LIFTED, "fd78::/64"]))?;
        if killed {
            pinned.limiter.kill()?;
            pinned.limiter.configure(&room_for(2048))?;
            pinned.restart_with(&[])?;
        } else {
            wait_for(|| {
                let status = pinned.limiter.status()?;
                Ok(status["daemon"]["reloads"]["unconfirmed_for_ns"].is_null())
            })?;
        }
        assert_eq!(pinned.limiter.status()?["bans"]["capacity"], 2048);
        for (source, expected) in [(CLIENT, true), (NEIGHBOUR, true), (LIFTED, false)] {
            let banned = is_banned(&pinned.pair, &pinned.limiter, source)?;
            assert_eq!(banned, expected, "{source}, killed: {killed}");
        }
        let expected = [CLIENT, NEIGHBOUR].map(|address| (format!("{address}/32"), json!(1)));
        assert_eq!(listed(&pinned, "times")?, expected);
    }
    Ok(())
}
