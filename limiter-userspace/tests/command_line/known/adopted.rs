//! The next daemon adopts the program that observes handshakes: exactly one working link remains.

use std::{fs, io::ErrorKind, net::TcpStream, path::PathBuf, process::Command};

use anyhow::{Context as _, Result, ensure};
use aya::{
    maps::MapInfo,
    programs::{loaded_links, loaded_programs},
};
use limiter_datapath::kernel::pins::ABI;
use testbed::{Listener, SERVER_INTERFACE};

use super::standing;
use crate::{
    pinned::{Pinned, program},
    succeed, wait_for,
};

const CONFIGURATION: &str = "\
standing: {capacity: 4096}
limits: {All: {id: total, cost: packets, burst: 9000, count: 1, period: 1h, reserve: {unknown: 50%}}}
";

const PORT: u16 = 7;

/// Returns the ids of the links that hold a program over the pinned table of known sources.
fn links(pinned: &Pinned) -> Result<Vec<u32>> {
    let files = pinned.pins.files()?;
    let known = files.iter().find(|file| file.ends_with("reputation/KNOWN"));
    let known = MapInfo::from_pin(known.context("no table is pinned")?)?.id();
    // Links of other tests come and go.
    let programs: Vec<u32> = loaded_programs()
        .flatten()
        .filter(|program| {
            let is_named = |name: &str| name.starts_with("limiter_hands");
            let maps = program.map_ids().ok().flatten().unwrap_or_default();
            program.name_as_str().is_some_and(is_named) && maps.contains(&known)
        })
        .map(|program| program.id())
        .collect();
    let links = loaded_links().flatten();
    let ours = links.filter(|link| programs.contains(&link.program_id()));
    Ok(ours.map(|link| link.id()).collect())
}

/// Fails unless handshakes prove sources through one link; returns its id.
fn assert_proves(pinned: &Pinned) -> Result<u32> {
    let status = pinned.limiter.status()?;
    ensure!(
        status["standing"]["handshakes_error"].is_null(),
        "{status:#}"
    );
    let client = "10.77.0.2";
    succeed(pinned.with_pins("untrust").arg(client))?;
    let _listener = Listener::new(&pinned.pair.server, PORT)?;
    pinned.pair.client.enter(|| {
        match TcpStream::connect(("10.77.0.1", PORT)) {
            // The testbed's listener resets accepted connections.
            Err(error) if error.kind() == ErrorKind::ConnectionReset => Ok(()),
            connected => Ok(connected.map(drop)?),
        }
    })?;
    let proven = ("proven".to_owned(), "handshake".to_owned());
    wait_for(|| Ok(standing(&pinned.limiter, client)? == proven))?;
    let links = links(pinned)?;
    let [link] = links[..] else {
        anyhow::bail!("the links are {links:?}");
    };
    Ok(link)
}

/// Starts a limiter, ends it, and starts it again after `step`.
fn restarted(step: impl FnOnce(&Pinned, PathBuf) -> Result<()>) -> Result<(Pinned, [u32; 2])> {
    let mut pinned = Pinned::start(CONFIGURATION)?;
    let before = assert_proves(&pinned)?;
    pinned.limiter.kill()?;
    step(&pinned, pinned.pins.path().join("handshakes"))?;
    pinned.limiter.restart()?;
    let after = assert_proves(&pinned)?;
    Ok((pinned, [before, after]))
}

#[test]
fn that_of_the_same_version_is_taken_over() -> Result<()> {
    let (_pinned, [before, after]) = restarted(|_, _| Ok(()))?;
    assert_eq!(before, after);
    Ok(())
}

#[test]
fn that_of_another_abi_is_taken_over() -> Result<()> {
    let (pinned, [before, after]) = restarted(|pinned, _| {
        let of_version = |version: &str| pinned.pins.path().join(version);
        Ok(fs::rename(
            of_version(&format!("v{ABI}")),
            of_version("v0"),
        )?)
    })?;
    assert_eq!(before, after);
    let log = pinned.limiter.log()?;
    let reported = "this version cannot read the pins of ABI v0, of buckets, counters, offenders, \
                bans, sieves and known sources";
    ensure!(log.contains(reported), "{log}");
    Ok(())
}

#[test]
fn a_version_that_recorded_no_handshakes_gets_a_program() -> Result<()> {
    let (_pinned, [before, after]) = restarted(|pinned, link| {
        let policy = pinned.pins.path().join(format!("v{ABI}/policies/1"));
        fs::remove_file(link)?;
        Ok(fs::remove_file(policy.join("handshakes"))?)
    })?;
    assert_ne!(before, after);
    Ok(())
}

#[test]
fn a_link_that_was_detached_is_replaced() -> Result<()> {
    let (_pinned, [before, after]) = restarted(|pinned, link| {
        let mut bpftool = Command::new("bpftool");
        succeed(bpftool.args(["link", "detach", "pinned"]).arg(link))?;
        let shown = succeed(&mut pinned.with_pins("status"))?;
        let shown = String::from_utf8(shown.stdout)?;
        let reported =
            "HANDSHAKES PROVE NO SOURCE: the program that records handshakes is not on the root";
        ensure!(shown.contains(reported), "{shown}");
        Ok(())
    })?;
    assert_ne!(before, after);
    Ok(())
}

/// Simulates a version that observes handshakes through another kind of link.
#[test]
fn a_link_of_another_kind_is_replaced() -> Result<()> {
    let other = Pinned::start(crate::GOOD)?;
    let (_pinned, [before, after]) = restarted(|_, link| {
        let files = other.pins.files()?;
        let theirs = files.iter().find(|file| file.ends_with("link"));
        fs::remove_file(&link)?;
        let mut bpftool = Command::new("bpftool");
        bpftool.args(["link", "pin", "pinned"]);
        bpftool.arg(theirs.context("no link is pinned")?).arg(link);
        succeed(&mut bpftool).map(drop)
    })?;
    assert_ne!(before, after);
    let stays = program(&other.pair.server, SERVER_INTERFACE)?;
    ensure!(stays.is_some(), "what holds another program is detached");
    Ok(())
}
