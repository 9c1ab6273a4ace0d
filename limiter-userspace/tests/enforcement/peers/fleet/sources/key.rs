//! The fleet's key changes while known sources are shared.

use std::{
    path::PathBuf,
    thread,
    time::{Duration, SystemTime},
};

use anyhow::{Result, ensure};
use limiter_fleet::{Kind, sources::Source};
use testbed::Limiter;

use super::{HASH, LIMITS, NEWS, entry, envelope, known, wait_for};
use crate::peers::fleet::{
    KEYS_READ, NEW_KEY as NEW, configuration, start, status,
    store::{KEY as OLD, Store},
    wait_until, write_secret,
};
use crate::wait;

const NAMES: [&str; 4] = ["a", "b", "c", "d"];

/// How long to check that no node retries: each checks several times.
const QUIET: Duration = Duration::from_secs(3);

/// Returns a node's entries in the store, each with a digest of its message.
fn entries(store: &Store, node: &str) -> Result<String> {
    let own = "local own = {} local all = redis.call('HGETALL', KEYS[1]) for at = 1, #all, 2 do \
               if all[at]:sub(1, #ARGV[1]) == ARGV[1] then own[#own + 1] = all[at] .. ' ' .. \
               redis.sha1hex(all[at + 1]) end end table.sort(own) return own";
    store.command(&["eval", own, "1", HASH, &format!("{node} ")])
}

fn key_file(store: &Store, name: &str) -> PathBuf {
    store.directory().join(format!("{name}.key"))
}

fn begin(store: &Store, name: &str, keys: &[&str]) -> Result<Limiter> {
    write_secret(&key_file(store, name), &keys.join("\n"))?;
    let number = NAMES
        .iter()
        .position(|other| *other == name)
        .map_or(1, |number| number + 1);
    let text = configuration(store, number, (name, &NAMES), LIMITS, "");
    start(
        store,
        number,
        &text.replace("/fleet.key", &format!("/{name}.key")),
    )
}

/// Makes a node trust an address.
fn trust(node: &Limiter, address: &str) -> Result<()> {
    node.show(&["trust", address, "--for", "1h"]).map(drop)
}

fn refused(node: &Limiter) -> Result<u64> {
    let refused = status(node)?["refused"]["source"].as_u64();
    Ok(refused.unwrap_or_default())
}

/// Writes a node's entry about a source to the store, authenticated with a key.
fn forge(store: &Store, node: &str, key: &str, address: [u8; 4]) -> Result<()> {
    let envelope = envelope(Kind::Sources, key)?;
    let until = SystemTime::now() + Duration::from_hours(1);
    let (field, message) = entry(&envelope, node, Source::V4(address), until)?;
    // redis-cli accepts arbitrary bytes only from Lua.
    let write = |command: &str, key: &str, field: &str, message: &[u8]| {
        let bytes: Vec<_> = message.iter().map(|byte| format!("\\{byte:03}")).collect();
        let bytes = bytes.concat();
        let script = format!("redis.call('{command}', KEYS[1], {field}, '{bytes}') return 'OK'");
        let reported = store.command(&["eval", &script, "1", key])?;
        ensure!(reported.trim() == "OK", "{reported}");
        Ok(())
    };
    write("XADD", NEWS, "'*', 'm'", &message)?;
    write("HSET", HASH, &format!("'{field}'"), &message)
}

/// By the steps of docs/fleet.md: known sources stay known, and all nodes understand each other at each
/// step. Afterwards the old key proves no source, and messages authenticated with it are refused without
/// further effect.
#[test]
fn a_key_changes_while_sources_are_known() -> Result<()> {
    let store = Store::start(NAMES.len())?;
    let (a, b) = (begin(&store, "a", &[OLD])?, begin(&store, "b", &[OLD])?);
    let mut c = begin(&store, "c", &[OLD])?;
    let before = ["198.51.100.1", "198.51.100.2", "198.51.100.3"];
    for (node, address) in [&a, &b, &c].into_iter().zip(before) {
        trust(node, address)?;
    }
    for address in [before[0], before[2]] {
        wait_for(&b, address, "fleet")?;
    }
    wait_for(&a, before[1], "fleet")?;
    // A forged message with the right key is accepted, so later ones fail because of the key alone.
    forge(&store, "d", OLD, [203, 0, 113, 1])?;
    wait_for(&b, "203.0.113.1", "fleet")?;
    // This node is away meanwhile. Its entry is in the store.
    wait(|| Ok(entries(&store, "c")?.contains("c ")))?;
    ensure!(c.terminate()?.success());

    let mut before_last = [String::new(), String::new()];
    for (number, keys) in (1..).zip([&[OLD, NEW][..], &[NEW, OLD], &[NEW]]) {
        if number < 3 {
            before_last = [entries(&store, "a")?, entries(&store, "b")?];
        }
        for name in ["a", "b"] {
            write_secret(&key_file(&store, name), &keys.join("\n"))?;
        }
        for node in [&a, &b] {
            wait(|| Ok(node.log()?.matches(KEYS_READ).count() >= number))?;
        }
        let [of_a, of_b] = [1, 2].map(|last| format!("192.0.{number}.{last}"));
        trust(&a, &of_a)?;
        trust(&b, &of_b)?;
        wait_for(&b, &of_a, "fleet")?;
        wait_for(&a, &of_b, "fleet")?;
        for (node, address) in [(&b, before[0]), (&a, before[1]), (&a, before[2])] {
            ensure!(known(node, address)?["why"] == "fleet", "{address}");
        }
    }

    // A node that starts after all entries were rewritten learns everything from nodes with the key.
    for (name, before) in ["a", "b"].into_iter().zip(&before_last) {
        wait(|| {
            let now = entries(&store, name)?;
            Ok(before.lines().all(|entry| !now.contains(entry)))
        })?;
    }
    let d = begin(&store, "d", &[NEW])?;
    for address in ["192.0.1.1", "192.0.2.2", "192.0.3.1", before[0], before[1]] {
        wait_for(&d, address, "fleet")?;
    }
    ensure!(known(&d, before[2])?["why"] == "nothing");
    ensure!(known(&d, "203.0.113.1")?["why"] == "nothing");
    ensure!(refused(&d)? > 0);
    // Messages authenticated with the old key are refused.
    let all = [&a, &b, &d];
    let counts = all.map(|node| refused(node).ok());
    forge(&store, "a", OLD, [203, 0, 113, 2])?;
    for (node, before) in all.into_iter().zip(counts) {
        wait_until(node, |status| status["refused"]["source"].as_u64() > before)?;
    }
    ensure!(known(&b, "203.0.113.2")?["why"] == "nothing");
    // No node retries.
    let counts = all.map(|node| refused(node).ok());
    thread::sleep(QUIET);
    ensure!(all.map(|node| refused(node).ok()) == counts);
    for node in all {
        ensure!(status(node)?["sources"]["error"].is_null());
    }

    // The returning node has the new key, and the others accept its messages.
    write_secret(&key_file(&store, "c"), NEW)?;
    c.restart()?;
    trust(&c, "192.0.4.3")?;
    wait_for(&a, "192.0.4.3", "fleet")?;
    wait_for(&c, "192.0.3.2", "fleet")?;
    for node in [a, b, c, d] {
        ensure!(node.stop()?.success());
    }
    Ok(())
}
