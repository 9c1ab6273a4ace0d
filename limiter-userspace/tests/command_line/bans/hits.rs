//! Hits of bans, the packets and bytes dropped: counted, shown and kept.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};
use limiter_datapath::kernel::pins::ABI;
use serde_json::{Value, json};
use testbed::{CLIENT_INTERFACE, Frame, Limiter, RawSender, SERVER_INTERFACE};

use super::{CLIENT, NEIGHBOUR, listed, pair, reported, start};
use crate::{
    BINARY, GOOD,
    pinned::{Pinned, send},
    succeed, wait_for,
};

/// The length of [`send`]'s frames, in bytes.
const FRAME: u64 = 100;

/// The origins of a prefix share its hits, which are deleted with its last ban.
#[test]
fn hits_are_those_of_the_prefix() -> Result<()> {
    let (pair, client) = (pair()?, format!("{CLIENT}/32"));
    let limiter = start(&pair)?;
    limiter.show(&["ban", CLIENT, NEIGHBOUR])?;
    send(&pair, CLIENT, 7)?;
    send(&pair, NEIGHBOUR, 1)?;
    send(&pair, "10.77.0.9", 5)?;
    limiter.show(&["ban", CLIENT, "--for", "1h", "--origin", "fail2ban"])?;
    let bans = limiter.show(&["bans", "--json"])?;
    let of_client = |number: u64| (client.clone(), json!(number));
    let of_neighbour = |number: u64| (format!("{NEIGHBOUR}/32"), json!(number));
    let hits = [of_client(7), of_client(7), of_neighbour(1)];
    assert_eq!(reported(&bans, "hits")?, hits);
    let bytes = [7, 7].map(|packets| of_client(packets * FRAME));
    assert_eq!(reported(&bans, "hit_bytes")?[..2], bytes);
    let table = limiter.show(&["bans", CLIENT])?;
    let header = table.lines().next().unwrap_or_default();
    ensure!(header.contains("times  hits  reason"), "{table}");

    // Without the operator's ban, the other origin's ban is shown.
    limiter.show(&["unban", CLIENT, "--origin", "operator"])?;
    send(&pair, CLIENT, 2)?;
    let explained = limiter.show(&["explain", CLIENT])?;
    let line = explained.lines().nth(1).unwrap_or_default();
    ensure!(
        line.starts_with("BANNED by fail2ban") && line.ends_with(", 9 hits"),
        "{explained}"
    );
    assert_eq!(limiter.explain(CLIENT)?["bans"][0]["hits"], 9);
    let explained = limiter.show(&["explain", NEIGHBOUR])?;
    ensure!(explained.contains("is lifted, 1 hit\n"), "{explained}");

    limiter.show(&["unban", CLIENT])?;
    send(&pair, CLIENT, 3)?;
    limiter.show(&["ban", CLIENT])?;
    let bans = limiter.show(&["bans", CLIENT, "--json"])?;
    assert_eq!(reported(&bans, "hits")?, [of_client(0)]);
    Ok(())
}

/// Returns the hits of the only ban.
fn hits(pinned: &Pinned) -> Result<Value> {
    let listed = listed(pinned, "hits")?;
    let [(_, hits)] = &listed[..] else {
        anyhow::bail!("{listed:?}");
    };
    Ok(hits.clone())
}

#[test]
fn hits_outlive_the_daemon_and_policies() -> Result<()> {
    let room_for = |capacity: u32| format!("bans: {{capacity: {capacity}}}\n{GOOD}");
    let mut pinned = Pinned::start(&room_for(1024))?;
    succeed(pinned.with_pins("ban").arg(CLIENT))?;
    pinned.send(CLIENT, 5)?;
    ensure!(pinned.limiter.terminate()?.success());
    // The program counts without a daemon.
    pinned.send(CLIENT, 3)?;
    assert_eq!(hits(&pinned)?, 8);
    pinned.limiter.restart()?;
    assert_eq!(hits(&pinned)?, 8);
    pinned.limiter.kill()?;
    pinned.limiter.restart()?;
    pinned.send(CLIENT, 1)?;
    assert_eq!(hits(&pinned)?, 9);
    for (expected, capacity) in [(10, 2048), (11, 1024)] {
        pinned.reload(&room_for(capacity))?;
        pinned.send(CLIENT, 1)?;
        assert_eq!(hits(&pinned)?, expected, "{capacity}");
    }
    // A ban that replaces another keeps the count.
    succeed(pinned.with_pins("ban").args([CLIENT, "--for", "1h"]))?;
    pinned.send(CLIENT, 1)?;
    assert_eq!(hits(&pinned)?, 12);
    Ok(())
}

#[test]
fn the_state_file_keeps_hits() -> Result<()> {
    let (pair, directory) = (pair()?, tempfile::tempdir()?);
    let state = directory.path().join("state");
    let configuration = format!("state: {}\n{GOOD}", state.display());
    let arguments = ["-i", SERVER_INTERFACE, "--metrics", "off"];
    let binary = Path::new(BINARY);
    let mut limiter = Limiter::start(binary, &pair.server, &configuration, &arguments)?;
    limiter.show(&["ban", CLIENT, "fd78::/64", "--for", "1h"])?;
    send(&pair, CLIENT, 5)?;
    ensure!(limiter.terminate()?.success());
    limiter.restart()?;
    send(&pair, CLIENT, 1)?;
    let expected = [("10.77.0.2/32", 6 * FRAME), ("fd78::/64", 0)];
    let expected = expected.map(|(prefix, bytes)| (prefix.to_owned(), json!(bytes)));
    let bans = limiter.show(&["bans", "--json"])?;
    assert_eq!(reported(&bans, "hit_bytes")?, expected);
    assert_eq!(reported(&bans, "hits")?[0].1, 6);
    Ok(())
}

/// Returns the pinned map of hits.
fn map(pinned: &Pinned) -> PathBuf {
    let kept = format!("v{ABI}/kept/0/reputation/BAN_HITS");
    pinned.pins.path().join(kept)
}

/// Returns `bpftool --json map COMMAND` on the map of hits.
fn bpftool(pinned: &Pinned, command: &str, arguments: &[&str]) -> Result<Value> {
    let mut bpftool = std::process::Command::new("bpftool");
    bpftool.args(["--json", "map", command, "pinned"]);
    let output = succeed(bpftool.arg(map(pinned)).args(arguments))?;
    Ok(serde_json::from_slice(&output.stdout).unwrap_or_default())
}

/// Returns how many prefixes have a counter.
fn counted(pinned: &Pinned) -> Result<usize> {
    let elements = bpftool(pinned, "dump", &[])?;
    Ok(elements.as_array().context("no elements")?.len())
}

/// Only bans take room in the map, even if thousands of sources are forged; the next daemon removes
/// the entries that a killed one leaves.
#[test]
fn nobody_but_the_daemon_fills_the_map_of_hits() -> Result<()> {
    let mut pinned = Pinned::start(GOOD)?;
    succeed(pinned.with_pins("ban").args(["10.78.0.0/16", NEIGHBOUR]))?;
    let forged = (0..2_000_u32).map(|number| {
        let [.., high, low] = number.to_be_bytes();
        // Half of the sources are banned.
        let source = [10, 78 + (low & 1), high, low].into();
        Frame::new(source, "10.77.0.1".parse()?).udp(1, 2, b"x")
    });
    let received = pinned.pair.received()?;
    let sender = RawSender::new(&pinned.pair.client, CLIENT_INTERFACE)?;
    sender.send_frames(&forged.collect::<Result<Vec<_>>>()?)?;
    wait_for(|| Ok(pinned.pair.received()? >= received + 2_000))?;
    assert_eq!(counted(&pinned)?, 2);
    let expected = [(NEIGHBOUR, 0), ("10.78.0.0", 1_000)];
    let hits = listed(&pinned, "hits")?;
    for ((prefix, hits), (address, number)) in hits.iter().zip(expected) {
        ensure!(prefix.starts_with(address), "{prefix}");
        assert_eq!(*hits, number);
    }

    let bytes = |count: usize| vec!["7"; count];
    let orphan = [&["key"][..], &bytes(24), &["value"], &bytes(16)];
    pinned.limiter.kill()?;
    bpftool(&pinned, "update", &orphan.concat())?;
    assert_eq!(counted(&pinned)?, 3);
    pinned.limiter.restart()?;
    wait_for(|| Ok(counted(&pinned)? == 2))?;
    succeed(pinned.with_pins("unban").arg("--all"))?;
    assert_eq!(counted(&pinned)?, 0);
    Ok(())
}
