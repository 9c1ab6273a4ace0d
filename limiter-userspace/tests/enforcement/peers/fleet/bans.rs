//! A ban of one node is enforced on all.

use std::{
    fs::{self, File},
    time::{Duration, Instant},
};

use anyhow::{Result, ensure};

use super::{Fleet, bans_of, store, wait_for, wait_until};

/// How soon other nodes must enforce a ban.
const SOON: Duration = Duration::from_secs(1);

/// How many bans are timed.
const TIMED: usize = 30;

/// A ban of each node reaches the others within a second, with its reason, origin and end; a lifted ban is
/// lifted on all.
#[test]
fn a_ban_is_in_force_on_all_nodes_within_a_second() -> Result<()> {
    let fleet = Fleet::start(&["a", "b", "c"])?;
    let [a, b, c] = &fleet.nodes[..] else {
        unreachable!()
    };
    let of = [
        "--for",
        "10m",
        "--reason",
        "a test",
        "--origin",
        "night-shift",
    ];
    a.show(&[&["ban", "203.0.113.0/24"], &of[..]].concat())?;
    for node in [b, c] {
        let bans = wait_for(node, "203.0.113.0/24", 1)?;
        ensure!(bans[0]["origin"] == "night-shift", "{bans:?}");
        ensure!(bans[0]["reason"] == "a test", "{bans:?}");
        let left_s = bans[0]["ends_in_ns"].as_u64().unwrap_or_default() / 1_000_000_000;
        ensure!((570..=600).contains(&left_s), "{bans:?}");
    }
    // Bans of one prefix with different origins coexist, and are lifted separately.
    c.show(&["ban", "203.0.113.0/24", "--for", "1h"])?;
    wait_for(a, "203.0.113.0/24", 2)?;
    b.show(&["unban", "203.0.113.0/24", "--origin", "night-shift"])?;
    for node in [a, b, c] {
        let bans = wait_for(node, "203.0.113.0/24", 1)?;
        ensure!(bans[0]["origin"] == "operator", "{bans:?}");
    }
    b.show(&["unban", "203.0.113.0/24"])?;
    wait_for(c, "203.0.113.0/24", 0)?;

    let mut times = Vec::new();
    for number in 0..TIMED {
        let prefix = format!("198.51.100.{number}");
        let begun = Instant::now();
        a.show(&["ban", &prefix, "--for", "10m"])?;
        wait_for(b, &prefix, 1)?;
        times.push(begun.elapsed());
    }
    times.sort_unstable();
    let (half, most) = (times[TIMED / 2], times[TIMED * 99 / 100]);
    println!(
        "from `limiter ban` on one node to `limiter bans` on another: p50 {half:?}, p99 {most:?}"
    );
    // The median: single commands or daemons may be slow on a busy machine.
    ensure!(half < SOON, "{times:?}");

    let reported = wait_until(b, |status| {
        status["bans"]["operator"] == TIMED
            && status["nodes"].as_object().map(serde_json::Map::len) == Some(3)
    })?;
    ensure!(
        reported["connected"] == true && reported["unsent"] == 0,
        "{reported:#}"
    );
    ensure!(
        reported["refused"]
            .as_object()
            .is_some_and(serde_json::Map::is_empty),
        "{reported:#}"
    );
    let shown = b.show(&["fleet", "status"])?;
    ensure!(shown.contains("fleet edge, node b\n"), "{shown}");
    fleet.stop()
}

#[test]
fn a_thousand_bans_a_second_are_in_force_on_all_nodes() -> Result<()> {
    let fleet = Fleet::start(&["a", "b"])?;
    let [a, b] = &fleet.nodes[..] else {
        unreachable!()
    };
    let prefixes = (0..5_000).map(|number| format!("198.18.{}.{}", number / 250, number % 250));
    let prefixes = prefixes.collect::<Vec<_>>().join("\n");
    let file = fleet.store.directory().join("many");
    fs::write(&file, prefixes)?;
    let begun = Instant::now();
    let file = File::open(file)?;
    let output = a
        .command(&["ban", "--stdin", "--for", "10m"])
        .stdin(file)
        .output()?;
    ensure!(output.status.success(), "{output:?}");
    wait_until(b, |status| status["received"] == 5_000)?;
    let time = begun.elapsed();
    println!("5000 bans were in force on the other node after {time:?}");
    ensure!(time < Duration::from_secs(5), "{time:?}");
    wait_for(b, "198.18.0.0/15", 5_000)?;
    fleet.stop()
}

/// A node refuses a ban that would lock it out; the others enforce it.
#[test]
fn a_ban_that_locks_a_node_out_is_refused_there() -> Result<()> {
    let fleet = Fleet::start(&["a", "b", "c"])?;
    let [a, b, c] = &fleet.nodes[..] else {
        unreachable!()
    };
    let own = store::node_address(2);
    a.show(&["ban", &own, "--for", "1h"])?;
    wait_for(c, &own, 1)?;
    let reported = wait_until(b, |status| status["refused_here"] == 1)?;
    ensure!(reported["refused"]["protected"] == 1, "{reported:#}");
    ensure!(bans_of(b, &own)?.is_empty());
    b.wait_for_log(&format!(
        "the fleet's ban of {own} by node a is not in force here"
    ))?;
    a.show(&["unban", &own])?;
    wait_for(c, &own, 0)?;
    wait_until(b, |status| status["refused_here"] == 0)?;
    fleet.stop()
}
