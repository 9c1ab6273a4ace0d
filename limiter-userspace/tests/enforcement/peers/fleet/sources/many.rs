//! The most known sources that a node may send.

use std::{
    io::Write as _,
    process::{ChildStdin, Stdio},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;
use testbed::Limiter;

use super::super::{Fleet, five::quiet, status};

/// The table has its default size.
pub(super) const LIMITS: &str = "limits:
  Passing: {id: total, cost: packets, burst: 1000000, count: 1000000, period: 1s, reserve: {unknown: 10%}}";

/// Leaves room for the sources that each node has proven itself.
const MANY: u32 = 99_990;

/// How many sources are proven in a second.
const RATE: u32 = 1_000;

/// How long each step may take.
const LONGEST: Duration = Duration::from_mins(5);

const WATCHED: Duration = Duration::from_secs(30);

/// Measures how long nodes need to learn all sources, and the cost: at rest, and with a thousand more each
/// second, for a fleet that shares them and for one without sharing.
#[test]
#[ignore = "takes minutes: it is for measuring"]
fn a_hundred_thousand_sources() -> Result<()> {
    for (is_shared, more) in [(true, ""), (false, ", known-sources: 'off'")] {
        println!("known sources are shared: {is_shared}");
        let fleet = Fleet::among(super::store::Store::start(2)?, &["a", "b"], LIMITS, more)?;
        quiet::check(&fleet, WATCHED)?;
        let a = &fleet.nodes[0];
        let begun = Instant::now();
        let mut know = a.command(&["trust", "--stdin", "--for", "10h"]);
        let mut know = know.stdin(Stdio::piped()).stdout(Stdio::null()).spawn()?;
        let mut input = know.stdin.take().context("no pipe")?;
        let steady = MANY - RATE * u32::try_from(WATCHED.as_secs())?;
        write(&mut input, 0..steady)?;
        wait(a, &fleet.nodes[1], is_shared, steady)?;
        println!("{steady} were known on both after {:?}", begun.elapsed());
        let writing = thread::spawn(move || -> Result<()> {
            let begun = Instant::now();
            for (number, step) in (0..).zip((steady..MANY).step_by(100)) {
                write(&mut input, step..step + 100)?;
                let next = begun + Duration::from_millis(100) * (number + 1);
                thread::sleep(next.saturating_duration_since(Instant::now()));
            }
            Ok(())
        });
        println!("{RATE} more a second:");
        quiet::check(&fleet, WATCHED)?;
        let written = writing.join();
        ensure!(
            written.is_ok_and(|written| written.is_ok()),
            "they were not written"
        );
        ensure!(know.wait()?.success());
        wait(a, &fleet.nodes[1], is_shared, MANY)?;
        // Until the state file is written.
        thread::sleep(Duration::from_secs(65));
        println!("at rest, with all of them:");
        quiet::check(&fleet, 2 * WATCHED)?;
        println!(
            "{}",
            fleet
                .store
                .command(&["info", "memory"])?
                .lines()
                .nth(2)
                .unwrap_or_default()
        );
        fleet.stop()?;
    }
    Ok(())
}

fn write(input: &mut ChildStdin, numbers: std::ops::Range<u32>) -> Result<()> {
    let lines =
        numbers.map(|number| format!("{}\n", std::net::Ipv4Addr::from(0x0a80_0000 + number)));
    input.write_all(lines.collect::<String>().as_bytes())?;
    Ok(())
}

/// Waits until a node knows so many sources, and the other node too, if they share them.
fn wait(node: &Limiter, other: &Limiter, is_shared: bool, count: u32) -> Result<()> {
    let begun = Instant::now();
    let is_there = || -> Result<bool> {
        if !is_shared {
            let known: Value = serde_json::from_str(&node.show(&["trusted", "--json"])?)?;
            return Ok(known["trusted"] == count);
        }
        Ok(status(other)?["sources"]["received"].as_u64() >= Some(count.into()))
    };
    while !is_there()? {
        ensure!(begun.elapsed() < LONGEST, "{:#}", status(other)?);
        thread::sleep(Duration::from_millis(100));
    }
    Ok(())
}
