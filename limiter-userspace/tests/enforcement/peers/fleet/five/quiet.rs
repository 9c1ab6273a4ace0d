//! A fleet that has nothing to do costs nearly nothing.

use std::{
    fs, thread,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, ensure};
use testbed::Limiter;

use crate::peers::fleet::{Fleet, store::Store};

/// The most commands that a quiet node sends in a second.
const MOST: u64 = 50;

/// Watches idle nodes for some time. Checks the number of commands to the store, and prints the CPU time of
/// each daemon and of the store.
pub(in super::super) fn check(fleet: &Fleet, watched: Duration) -> Result<()> {
    let before = (Instant::now(), commands(&fleet.store)?, ticks(fleet)?);
    thread::sleep(watched);
    let ms = u64::try_from(before.0.elapsed().as_millis())?;
    let nodes = fleet.nodes.len() as u64;
    let sent = (commands(&fleet.store)? - before.1) * 1_000;
    let worked = ticks(fleet)?.into_iter().zip(before.2);
    // A tick is ten milliseconds.
    let worked: Vec<_> = worked
        .map(|(after, before)| (after - before) * 10 * 1_000_000 / ms)
        .collect();
    println!(
        "a quiet node sent {}.{} commands a second; the nodes and the store took {worked:?} millionths of a CPU",
        sent / ms / nodes,
        sent * 10 / ms / nodes % 10,
    );
    ensure!(
        sent / ms / nodes <= MOST,
        "{sent} commands of {nodes} in {ms} ms"
    );
    Ok(())
}

/// Returns how many commands the store has received.
fn commands(store: &Store) -> Result<u64> {
    let reported = store.command(&["info", "commandstats"])?;
    let calls = reported
        .lines()
        .filter_map(|line| line.split_once("calls="));
    let calls = calls.filter_map(|(_, rest)| rest.split(',').next()?.parse::<u64>().ok());
    Ok(calls.sum())
}

/// Returns the CPU time of each daemon and of the store, in hundredths of a second.
fn ticks(fleet: &Fleet) -> Result<Vec<u64>> {
    let nodes = fleet.nodes.iter().map(Limiter::id);
    nodes.chain([fleet.store.id()?]).map(worked).collect()
}

fn worked(process: u32) -> Result<u64> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat"))?;
    // After the name, which may have any characters, come the state and, 12th and 13th, the times.
    let (_, fields) = stat.rsplit_once(')').context("no name in stat")?;
    let mut fields = fields.split_whitespace().skip(11);
    let mut next = || fields.next()?.parse::<u64>().ok();
    next()
        .zip(next())
        .map(|(user, system)| user + system)
        .context("no times in stat")
}
