//! The store's disk is full: it refuses writes.

use std::{
    fs::{self, File},
    io::Write as _,
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, ensure};

use super::{LIMITS, check_recovery};
use crate::peers::fleet::{
    Fleet, PACE, PATIENCE,
    shared_limits::{Flood, wait_for_share},
    store::{Disk, Store},
    wait_for, wait_until,
};

/// The most lines that a node may log about it in some seconds, with several attempts.
const MOST_LINES: usize = 2;

/// The nodes report it and go on, with active bans and the minimum share of the budget. Once there is room
/// again, they share again.
#[test]
fn nodes_go_on_while_the_stores_disk_is_full() -> Result<()> {
    let nodes = ["a", "b"];
    let fleet = Fleet::among(Store::on(Disk::Small, nodes.len())?, &nodes, LIMITS, "")?;
    let [a, b] = &fleet.nodes[..] else {
        unreachable!()
    };
    a.show(&["ban", "192.0.2.1", "--for", "1h"])?;
    wait_for(b, "192.0.2.1", 1)?;
    let flood = Flood::of(&fleet, 1)?;
    wait_for_share(a, |share| share > 900)?;

    let filler = fleet.store.file_on_disk("filler")?;
    fill(&filler)?;
    let begun = Instant::now();
    while !refuses(&fleet.store)? {
        ensure!(begun.elapsed() < PATIENCE, "the disk is not full");
        thread::sleep(PACE);
    }
    for node in [a, b] {
        wait_until(node, |status| {
            let error = status["error"].as_str().unwrap_or_default();
            status["connected"] == false && error.contains("MISCONF")
        })?;
        node.wait_for_log("No space left on device; bans hold as they are")?;
    }
    wait_for_share(a, |share| share == 25)?;
    a.wait_for_log("are not shared over its store")?;
    a.show(&["ban", "192.0.2.2", "--for", "1h"])?;
    wait_until(a, |status| status["unsent"] == 1)?;
    let lines_before = lines(a)?;
    thread::sleep(Duration::from_secs(4));
    let lines = lines(a)? - lines_before;
    ensure!(lines <= MOST_LINES, "{}", a.log()?);
    wait_for(b, "192.0.2.1", 1)?;
    wait_for(b, "192.0.2.2", 0)?;

    fs::remove_file(&filler)?;
    let begun = Instant::now();
    wait_for(b, "192.0.2.2", 1)?;
    wait_for_share(a, |share| share > 900)?;
    check_recovery("the disk has room", begun.elapsed())?;
    for node in [a, b] {
        wait_until(node, |status| status["connected"] == true)?;
    }
    flood.stop()?;
    fleet.stop()
}

/// Fills the disk.
fn fill(filler: &std::path::Path) -> Result<()> {
    let mut file = File::create(filler).context("no disk")?;
    while file.write_all(&[0; 512]).is_ok() {}
    Ok(())
}

/// Returns whether a store refuses to write.
fn refuses(store: &Store) -> Result<bool> {
    // Long enough to need more than the rest of the current page.
    let answer = store.command(&["set", "other", &"x".repeat(4_000)])?;
    Ok(answer.contains("MISCONF"))
}

fn lines(node: &testbed::Limiter) -> Result<usize> {
    let log = node.log()?;
    Ok(log.lines().filter(|line| line.contains("store")).count())
}
