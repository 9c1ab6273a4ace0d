//! A ban of one node is enforced on all.

use std::{
    fs::{self, File},
    time::{Duration, Instant},
};

use anyhow::{Result, ensure};

use super::{Fleet, bans_of, status, store, wait_for, wait_until};
use crate::wait;

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

/// A returning node catches up on bans and liftings, its own included.
#[test]
fn a_node_that_was_away_knows_what_it_missed() -> Result<()> {
    let mut fleet = Fleet::start(&["a", "b"])?;
    let [a, b] = &mut fleet.nodes[..] else {
        unreachable!()
    };
    for prefix in ["192.0.2.1", "192.0.2.2"] {
        a.show(&["ban", prefix, "--for", "1h"])?;
        wait_for(b, prefix, 1)?;
    }
    b.terminate()?;
    a.show(&["unban", "192.0.2.1"])?;
    a.show(&["ban", "192.0.2.3", "--for", "1h"])?;
    b.restart()?;
    wait_for(b, "192.0.2.3", 1)?;
    wait_for(b, "192.0.2.1", 0)?;
    wait_for(b, "192.0.2.2", 1)?;
    let reported = wait_until(b, |status| status["connected"] == true)?;
    ensure!(
        reported["sent"] == 0,
        "what others sent was sent again: {reported:#}"
    );

    // Cut off, each node goes on alone, and informs the other when it is back.
    fleet.store.set_link(2, "down")?;
    b.show(&["unban", "192.0.2.2"])?;
    b.show(&["ban", "192.0.2.4", "--for", "1h"])?;
    a.show(&["ban", "192.0.2.5", "--for", "1h"])?;
    wait_until(b, |status| status["connected"] == false)?;
    wait_until(b, |status| status["unsent"] == 2)?;
    ensure!(bans_of(b, "192.0.2.4")?.len() == 1 && bans_of(b, "192.0.2.3")?.len() == 1);
    fleet.store.set_link(2, "up")?;
    wait_for(b, "192.0.2.5", 1)?;
    wait_for(a, "192.0.2.4", 1)?;
    wait_for(a, "192.0.2.2", 0)?;
    fleet.stop()
}

/// The nodes fill an empty store, and need none to go on.
#[test]
fn a_store_that_was_lost_is_filled_again() -> Result<()> {
    let mut fleet = Fleet::start(&["a", "b"])?;
    let [a, b] = &fleet.nodes[..] else {
        unreachable!()
    };
    a.show(&["ban", "192.0.2.1", "--for", "1h"])?;
    b.show(&["ban", "192.0.2.2", "--for", "1h"])?;
    wait_for(b, "192.0.2.1", 1)?;
    wait_for(a, "192.0.2.2", 1)?;
    fleet.store.kill()?;
    wait_until(a, |status| status["connected"] == false)?;
    b.show(&["ban", "192.0.2.3", "--for", "1h"])?;
    b.show(&["unban", "192.0.2.1"])?;
    ensure!(bans_of(a, "192.0.2.2")?.len() == 1);
    fleet.store.run()?;
    let begun = Instant::now();
    wait_for(a, "192.0.2.3", 1)?;
    wait_for(a, "192.0.2.1", 0)?;
    println!(
        "{:?} after the store was back, all was known",
        begun.elapsed()
    );
    let is_filled = || {
        let bans = fleet.store.command(&["hlen", "limiter:{edge}:bans"])?;
        Ok(bans.trim() == "3")
    };
    wait(is_filled)?;
    // The store loses its data while it runs, and the nodes notice.
    fleet.store.command(&["flushall"])?;
    wait(is_filled)?;
    ensure!(bans_of(a, "192.0.2.2")?.len() == 1 && bans_of(b, "192.0.2.2")?.len() == 1);
    fleet.stop()
}

/// An attacker with write access to the store but without the key can neither ban nor lift.
#[test]
fn forged_messages_do_nothing() -> Result<()> {
    let fleet = Fleet::start(&["a", "b"])?;
    let [a, b] = &fleet.nodes[..] else {
        unreachable!()
    };
    let store = &fleet.store;
    a.show(&["ban", "192.0.2.1", "--for", "1h"])?;
    wait_for(b, "192.0.2.1", 1)?;
    let news = "limiter:{edge}:news";
    for forged in [
        "",
        "ban 192.0.2.9",
        "\u{1}0123456789abcdef0123456789abcdefxxxxxxxxxxxxxxxxx",
    ] {
        store.command(&["xadd", news, "*", "m", forged])?;
        store.command(&[
            "hset",
            "limiter:{edge}:bans",
            "192.0.2.9/32 operator",
            forged,
        ])?;
        store.command(&["hset", "limiter:{edge}:nodes", "c", forged])?;
    }
    store.command(&["xadd", news, "*", "other", "x"])?;
    store.command(&["hdel", "limiter:{edge}:bans", "192.0.2.1/32 operator"])?;
    wait_until(b, |status| status["refused"]["mac"].as_u64() >= Some(1))?;
    // The nodes still exchange bans afterwards.
    a.show(&["ban", "192.0.2.2", "--for", "1h"])?;
    wait_for(b, "192.0.2.2", 1)?;
    for node in [a, b] {
        ensure!(bans_of(node, "192.0.2.9")?.is_empty());
        ensure!(bans_of(node, "192.0.2.1")?.len() == 1);
    }
    let nodes = status(b)?["nodes"].take();
    ensure!(nodes.get("c").is_none(), "{nodes:#}");
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
