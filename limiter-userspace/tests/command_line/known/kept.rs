//! Known sources outlive reloads, daemons and reboots.

use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use jiff::SignedDuration;
use limiter_datapath::state::StateFile;
use serde_json::Value;
use testbed::{Limiter, SERVER_INTERFACE};

use super::{CONFIGURATION, is_trusted, standing};
use crate::{BINARY, pair, pinned::Pinned, succeed, wait_for};

const ADDRESSES: [&str; 2] = ["192.0.2.1", "2001:db8::7"];

/// Without pins, a daemon starts as after a reboot.
#[test]
fn the_state_file_brings_sources_back_before_the_first_packet() -> Result<()> {
    let (pair, directory) = (pair()?, tempfile::tempdir()?);
    let state = directory.path().join("state");
    let configuration = format!("state: {}\n{CONFIGURATION}", state.display());
    let arguments = [
        "-i",
        SERVER_INTERFACE,
        "--metrics",
        "off",
        "--log-format",
        "human",
    ];
    let binary = Path::new(BINARY);
    let mut limiter = Limiter::start(binary, &pair.server, &configuration, &arguments)?;
    let reported = limiter.show(&[&["trust", "--for", "1h"], &ADDRESSES[..]].concat())?;
    ensure!(!reported.contains("ends with the daemon"), "{reported}");
    ensure!(limiter.terminate()?.success());

    limiter.restart()?;
    let log = limiter.log()?;
    let (known, attached) = (
        log.find("the saved sources are known again (sources: 2)"),
        log.rfind("attached to server0"),
    );
    ensure!(known.is_some() && known < attached, "{log}");
    for address in ADDRESSES {
        ensure!(is_trusted(&limiter, address)?, "{address}");
    }
    let reported: Value =
        serde_json::from_str(&limiter.show(&["trusted", ADDRESSES[0], "--json"])?)?;
    let left = reported["ends_in_ns"].as_u64().context("an end")?;
    let hour = 3_600_000_000_000;
    ensure!(
        (hour / 4 * 3..=hour + 2_000_000_000).contains(&left),
        "{left}"
    );
    wait_for(|| Ok(limiter.status()?["daemon"]["state"]["sources"] == 2))?;
    // With another prefix length of sources, no source is known.
    ensure!(limiter.terminate()?.success());
    limiter.configure(&configuration.replace("capacity: 4096", "ipv6-prefix: 56"))?;
    limiter.restart()?;
    ensure!(
        is_trusted(&limiter, "2001:db8:0:ff::1")?,
        "its /56 is known"
    );
    ensure!(limiter.stop()?.success());
    Ok(())
}

/// A state file dated tomorrow counts as if no time had passed; one dated yesterday is too old for
/// its entries.
#[test]
fn sources_are_resumed_after_the_clock_was_set() -> Result<()> {
    let (pair, directory) = (pair()?, tempfile::tempdir()?);
    let file = StateFile::new(directory.path().join("state"));
    let configuration = format!("state: {}\n{CONFIGURATION}", file.path().display());
    let arguments = ["-i", SERVER_INTERFACE, "--metrics", "off"];
    let binary = Path::new(BINARY);
    let mut limiter = Limiter::start(binary, &pair.server, &configuration, &arguments)?;
    let known = [["1h", ADDRESSES[0]], ["30d", ADDRESSES[1]]];
    for [time, address] in known {
        limiter.show(&["trust", "--for", time, address])?;
    }
    for (hours, are_known) in [(24, [true, true]), (-48, [false, true])] {
        ensure!(limiter.terminate()?.success());
        let mut saved = file.load()?.context("nothing is saved")?;
        saved.saved_at += SignedDuration::from_hours(hours);
        file.save(&saved)?;
        limiter.restart()?;
        for (address, is_known) in ADDRESSES.into_iter().zip(are_known) {
            let found = is_trusted(&limiter, address)?;
            ensure!(found == is_known, "{address} after {hours} hours: {found}");
        }
    }
    ensure!(limiter.stop()?.success());
    Ok(())
}

#[test]
fn reloads_restarts_and_crashes_keep_who_is_known() -> Result<()> {
    let mut pinned = Pinned::start(CONFIGURATION)?;
    succeed(pinned.with_pins("trust").args(ADDRESSES))?;
    let is_kept = |pinned: &Pinned| -> Result<()> {
        for address in ADDRESSES {
            ensure!(is_trusted(&pinned.limiter, address)?, "{address}");
        }
        Ok(())
    };
    // A table of the same size, then a larger one.
    for changed in [
        CONFIGURATION.replace("burst: 9000", "burst: 8000"),
        CONFIGURATION.replace("capacity: 4096", "capacity: 9000"),
    ] {
        pinned.reload(&changed)?;
        is_kept(&pinned)?;
    }
    ensure!(pinned.limiter.terminate()?.success());
    pinned.limiter.restart()?;
    is_kept(&pinned)?;
    pinned.limiter.kill()?;
    pinned.limiter.restart()?;
    is_kept(&pinned)?;
    // Without a limit that uses standing, known sources are discarded.
    pinned.reload(crate::GOOD)?;
    pinned.reload(CONFIGURATION)?;
    assert_eq!(standing(&pinned.limiter, ADDRESSES[0])?.1, "nothing");
    Ok(())
}
