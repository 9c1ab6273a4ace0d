//! As many bans as a fleet can hold.

use std::{
    fs::{self, File},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;
use testbed::Limiter;

use super::quiet;
use crate::peers::{
    PASSES,
    fleet::{Fleet, configuration, start, status, store::Store, wait_for},
};

/// One less than the limit.
const MANY: u64 = 499_999;

/// How long each step may take.
pub(in super::super) const LONGEST: Duration = Duration::from_mins(5);

/// Measures how long nodes need to learn all bans, and the cost.
#[test]
#[ignore = "takes minutes: it is for measuring"]
fn half_a_million_bans() -> Result<()> {
    let store = Store::start(2)?;
    let node = |number: usize, name: &str| {
        let text = configuration(&store, number, (name, &["a", "b"]), PASSES, "");
        start(
            &store,
            number,
            &format!("{text}bans: {{capacity: 600000}}\n"),
        )
    };
    let a = node(1, "a")?;
    println!("without bans: {}", memory(&a)?);
    let prefixes = (0..MANY).map(|number| {
        format!(
            "10.{}.{}.{}",
            number >> 16,
            number >> 8 & 0xff,
            number & 0xff
        )
    });
    let file = store.directory().join("many");
    fs::write(&file, prefixes.collect::<Vec<_>>().join("\n"))?;
    let begun = Instant::now();
    let mut ban = a.command(&["ban", "--stdin", "--for", "10h"]);
    let output = ban.stdin(File::open(file)?).output()?;
    ensure!(output.status.success(), "{output:?}");
    println!("made after {:?}", begun.elapsed());
    wait(&a, |status| status["sent"] == MANY && status["unsent"] == 0)?;
    println!("sent after {:?}: {}", begun.elapsed(), memory(&a)?);
    let begun = Instant::now();
    let b = node(2, "b")?;
    println!("another node enforces after {:?}", begun.elapsed());
    wait(&b, |status| {
        status["received"] == MANY && status["connected"] == true
    })?;
    println!("it knows all after {:?}: {}", begun.elapsed(), memory(&b)?);
    println!(
        "{}",
        store
            .command(&["info", "memory"])?
            .lines()
            .nth(2)
            .unwrap_or_default()
    );
    let fleet = Fleet {
        nodes: vec![a, b],
        store,
    };
    // Until both nodes have saved their changes.
    thread::sleep(Duration::from_secs(65));
    quiet::check(&fleet, Duration::from_mins(1))?;
    let nodes = &fleet.nodes;
    let begun = Instant::now();
    nodes[0].show(&["ban", "192.0.2.1", "--for", "1h"])?;
    wait_for(&nodes[1], "192.0.2.1", 1)?;
    println!("one more takes {:?}", begun.elapsed());
    fleet.stop()
}

fn wait(node: &Limiter, is_right: impl Fn(&Value) -> bool) -> Result<()> {
    let begun = Instant::now();
    while !is_right(&status(node)?) {
        ensure!(begun.elapsed() < LONGEST, "{:#}", status(node)?);
        thread::sleep(Duration::from_millis(100));
    }
    Ok(())
}

/// Returns a daemon's current and peak memory.
pub(in super::super) fn memory(node: &Limiter) -> Result<String> {
    let status = fs::read_to_string(format!("/proc/{}/status", node.id()))?;
    let line = |name| status.lines().find(|line| line.starts_with(name));
    let [now, most] = ["VmRSS", "VmHWM"].map(|name| line(name).context("no such line"));
    Ok(format!("{}, {}", now?, most?))
}
