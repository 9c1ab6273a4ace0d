//! Attacks by a writer to the store without the fleet's key, and by a false server.

use std::{
    fs,
    io::{Read as _, Write as _},
    net::TcpListener,
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, ensure};
use testbed::Limiter;

use super::{
    Fleet, PASSES, bans_of,
    sources::{self, HASH, NEWS, client, known},
    start, status,
    store::{Store, address},
    wait_for, wait_until,
};
use crate::wait;

/// How soon bans must be in force during an attack.
const SOON: Duration = Duration::from_secs(8);

/// The most that a node's memory may grow, in KiB: less than each hash and the stream have.
const MOST_KIB: u64 = 48 << 10;

/// The port of the false server.
const FALSE_PORT: u16 = 7_777;

fn lines(node: &Limiter, text: &str) -> Result<usize> {
    Ok(node.log()?.matches(text).count())
}

/// Makes the kernel measure a node's peak of memory from now on; returns the memory in use, in KiB.
fn begin_measuring(node: &Limiter) -> Result<u64> {
    fs::write(format!("/proc/{}/clear_refs", node.id()), "5")?;
    most_memory(node)
}

/// Returns the peak of a node's memory, in KiB.
fn most_memory(node: &Limiter) -> Result<u64> {
    let status = fs::read_to_string(format!("/proc/{}/status", node.id()))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let line = line.context("no such line")?.trim();
    Ok(line.trim_end_matches(" kB").parse()?)
}

/// Nodes notice it, log it once, and go on by the hash, also a node that starts then. Once an operator has
/// deleted the stream, they use it again.
#[test]
fn a_stream_that_takes_no_more_messages_stops_nothing() -> Result<()> {
    let mut fleet = Fleet::start(&["a", "b"])?;
    let news = "limiter:{edge}:news";
    let last = format!("{}-{}", u64::MAX, u64::MAX);
    (fleet.store).command(&["xadd", news, &last, "m", "the last"])?;
    let ended = format!("the fleet's stream {news} takes no more messages");
    for (number, prefix) in (0..).zip(["192.0.2.1", "192.0.2.2"]) {
        let (own, other) = (&fleet.nodes[number], &fleet.nodes[1 - number]);
        let asked = Instant::now();
        own.show(&["ban", prefix, "--for", "1h"])?;
        wait_for(other, prefix, 1)?;
        println!("in force after {:?}", asked.elapsed());
        ensure!(asked.elapsed() < SOON, "{}", other.log()?);
    }
    fleet.nodes[1].terminate()?;
    fleet.nodes[0].show(&["unban", "192.0.2.1"])?;
    fleet.nodes[0].show(&["ban", "192.0.2.3", "--for", "1h"])?;
    fleet.nodes[1].restart()?;
    let [a, b] = &fleet.nodes[..] else {
        unreachable!()
    };
    wait_for(b, "192.0.2.3", 1)?;
    wait_for(b, "192.0.2.1", 0)?;
    b.show(&["unban", "192.0.2.3"])?;
    wait_for(a, "192.0.2.3", 0)?;

    // The second node has started twice.
    for (node, starts) in [(a, 1), (b, 2)] {
        ensure!(lines(node, &ended)? == starts, "{}", node.log()?);
    }
    fleet.store.command(&["del", news])?;
    for node in [a, b] {
        node.wait_for_log(&format!("the fleet's stream {news} takes messages again"))?;
    }
    a.show(&["ban", "192.0.2.4", "--for", "1h"])?;
    wait_for(b, "192.0.2.4", 1)?;
    wait(|| Ok(fleet.store.command(&["xlen", news])?.trim() != "0"))?;
    fleet.stop()
}

/// Neither hashes nor streams with many megabytes fill a node's memory, and bans go on.
#[test]
fn values_of_any_size_do_not_fill_memory() -> Result<()> {
    let fleet = Fleet::start(&["a", "b"])?;
    let [a, b] = &fleet.nodes[..] else {
        unreachable!()
    };
    let before = [begin_measuring(a)?, begin_measuring(b)?];
    let fill = "for number = 1, 60 do \
                redis.call('HSET', KEYS[1], 'x' .. number, string.rep('x', 1000000)) \
                redis.call('HSET', KEYS[2], 'x' .. number, string.rep('x', 1000000)) \
                redis.call('XADD', KEYS[3], '*', 'm', string.rep('x', 1000000)) end return 'OK'";
    let keys = ["nodes", "bans", "news"].map(|key| format!("limiter:{{edge}}:{key}"));
    let [nodes, bans, news] = &keys;
    let filled = fleet
        .store
        .command(&["eval", fill, "3", nodes, bans, news])?;
    ensure!(filled.trim() == "OK", "{filled}");
    // All nodes read everything again.
    (fleet.store).command(&["client", "kill", "type", "normal"])?;
    let gone = |hash: &str| {
        let count = "local long = 0 for _, value in ipairs(redis.call('HVALS', KEYS[1])) do \
                     if #value > 200000 then long = long + 1 end end return long";
        Ok(fleet.store.command(&["eval", count, "1", hash])?.trim() == "0")
    };
    for hash in [nodes, bans] {
        wait(|| gone(hash))?;
    }
    for node in [a, b] {
        wait_until(node, |status| status["connected"] == true)?;
    }
    a.show(&["ban", "192.0.2.1", "--for", "1h"])?;
    wait_for(b, "192.0.2.1", 1)?;
    for (node, before) in [a, b].into_iter().zip(before) {
        let grown = most_memory(node)?.saturating_sub(before);
        println!("memory has grown by {grown} KiB");
        ensure!(grown < MOST_KIB, "{grown} KiB\n{}", node.log()?);
    }
    fleet.stop()
}

/// A false server's errors, with characters that act and a megabyte long, reach the log, the terminal and JSON
/// as one short line of visible text.
#[test]
fn a_servers_error_is_one_line_of_visible_text() -> Result<()> {
    let store = Store::start(1)?;
    let listener = store
        .namespace()
        .enter(|| Ok(TcpListener::bind(("0.0.0.0", FALSE_PORT))?))?;
    // It ends with the process.
    thread::spawn(move || {
        let evil = format!(
            "-ERR \u{1b}[2J\u{202e}evil\u{2028}{}\r\n",
            "x".repeat(1_000_000)
        );
        for mut stream in listener.incoming().flatten() {
            let mut command = [0; 4_096];
            while stream.read(&mut command).is_ok_and(|read| read > 0)
                && stream.write_all(evil.as_bytes()).is_ok()
            {}
        }
    });
    let (own, key) = (address(1), store.directory().join("fleet.key"));
    let text = format!(
        "{PASSES}\nfleet: {{store: 'redis://{own}:{FALSE_PORT}', name: edge, node: a, key-file: {}}}\n",
        key.display()
    );
    let node = start(&store, 1, &text)?;
    let status = wait_until(&node, |status| {
        let error = status["error"].as_str();
        error.is_some_and(|error| error.contains("evil"))
    })?;
    let error = status["error"].as_str().unwrap_or_default();
    node.wait_for_log("evil")?;
    let (shown, log) = (node.show(&["fleet", "status"])?, node.log()?);
    for text in [error, &shown, &log] {
        let acts = |character: char| character.is_control() && character != '\n';
        ensure!(!text.contains(acts), "{text:?}");
        ensure!(!text.contains(['\u{202e}', '\u{2028}']), "{text:?}");
        let longest = text.lines().map(str::len).max();
        ensure!(longest < Some(1_000), "{longest:?}");
    }
    ensure!(
        error.contains("\\u{1b}[2J\\u{202e}evil\\u{2028}"),
        "{error}"
    );
    ensure!(node.stop()?.success());
    Ok(())
}

/// An attacker with write access to the store but without the key can neither ban nor lift, prove no source, and lengthen
/// no entry by replaying it.
#[test]
fn forged_and_repeated_messages_do_nothing() -> Result<()> {
    let fleet = sources::fleet(&["a", "b"], "")?;
    let [a, b] = &fleet.nodes[..] else {
        unreachable!()
    };
    let store = &fleet.store;
    let (taken_back, later) = (client(1), client(2));
    a.show(&["ban", "192.0.2.1", "--for", "1h"])?;
    a.show(&["trust", &taken_back, "--for", "1h"])?;
    wait_for(b, "192.0.2.1", 1)?;
    sources::wait_for(b, &taken_back, "fleet")?;
    sources::wait_for_entries(store)?;
    let copy =
        "local all = redis.call('HGETALL', KEYS[1]) redis.call('HSET', KEYS[2], unpack(all))";
    store.command(&["eval", copy, "2", HASH, "kept"])?;
    a.show(&["untrust", &taken_back])?;
    sources::wait_for(b, &taken_back, "nothing")?;
    let ban = "192.0.2.9/32 operator";
    for forged in [
        "",
        "ban 192.0.2.9",
        "\u{1}0123456789abcdef0123456789abcdefxxxxxxxxxxxxxxxxx",
    ] {
        for stream in ["limiter:{edge}:news", NEWS] {
            store.command(&["xadd", stream, "*", "m", forged])?;
        }
        for (hash, field) in [("bans", ban), ("nodes", "c"), ("sources", "c 1")] {
            store.command(&["hset", &format!("limiter:{{edge}}:{hash}"), field, forged])?;
        }
    }
    store.command(&["xadd", "limiter:{edge}:news", "*", "other", "x"])?;
    store.command(&["hdel", "limiter:{edge}:bans", "192.0.2.1/32 operator"])?;
    let repeat = "for _, one in ipairs(redis.call('XRANGE', KEYS[1], '-', '+')) do \
                  redis.call('XADD', KEYS[1], '*', unpack(one[2])) end";
    store.command(&["eval", repeat, "1", NEWS])?;
    store.command(&["eval", copy, "2", "kept", HASH])?;
    wait_until(b, |status| {
        status["refused"]["source"].as_u64() >= Some(2)
            && status["refused"]["mac"].as_u64() >= Some(1)
    })?;
    // All later updates arrive. A reconnected node reads the hashes, too.
    store.set_link(2, "down")?;
    wait_until(b, |status| status["sources"]["error"].is_string())?;
    store.set_link(2, "up")?;
    a.show(&["ban", "192.0.2.2", "--for", "1h"])?;
    a.show(&["trust", &later, "--for", "1h"])?;
    wait_for(b, "192.0.2.2", 1)?;
    sources::wait_for(b, &later, "fleet")?;
    ensure!(known(b, &taken_back)?["why"] == "nothing");
    for node in [a, b] {
        ensure!(bans_of(node, "192.0.2.9")?.is_empty());
        ensure!(bans_of(node, "192.0.2.1")?.len() == 1);
    }
    let nodes = status(b)?["nodes"].take();
    ensure!(nodes.get("c").is_none(), "{nodes:#}");
    fleet.stop()
}
