//! A store with an ACL user that lacks some of the rights in docs/fleet.md.

use std::{thread, time::Duration};

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;
use testbed::Limiter;

use super::{
    Fleet, bans_of, configuration,
    shared_limits::{Flood, wait_for_share},
    start, status,
    store::{RIGHTS, Store},
    wait_for, wait_until,
};

/// A policy that uses everything a fleet shares.
const LIMITS: &str = "standing: {capacity: 4096}
limits:
  Passing: {id: total, cost: packets, burst: 1000000, count: 1000000, period: 1s, reserve: {unknown: 50%}}
  All: {id: total, cost: packets, match: {protocol: udp, destination-port: 9}, scope: fleet, burst: 5000,
        count: 1000, period: 1s}";

/// The keys that bans need.
const KEYS_OF_BANS: &str = "~limiter:{edge}:bans ~limiter:{edge}:news ~limiter:{edge}:nodes ~limiter:{edge}:push \
                            ~limiter:{edge}:answers";

/// The commands of docs/fleet.md.
const COMMANDS: [&str; 16] = [
    "hset",
    "hmget",
    "hdel",
    "hscan",
    "hlen",
    "del",
    "time",
    "evalsha",
    "script|load",
    "info",
    "xadd",
    "xread",
    "xrange",
    "xrevrange",
    "multi",
    "exec",
];

/// How long the log must stay silent, over several attempts.
const QUIET: Duration = Duration::from_millis(1_500);

/// Changes the user's rights.
fn set_user(store: &Store, rights: &[&str]) -> Result<()> {
    let reported = store.command(&[&["ACL", "SETUSER", "edge"], rights].concat())?;
    ensure!(reported.trim() == "OK", "{reported}");
    Ok(())
}

/// Returns the errors of the three parts: bans, budgets, known sources.
fn errors(status: &Value) -> [&Value; 3] {
    let sources = &status["sources"];
    [&status["error"], &status["leases_error"], &sources["error"]]
}

fn shares_all(status: &Value) -> bool {
    status["connected"] == true
        && status["sources"].is_object()
        && errors(status).iter().all(|error| error.is_null())
}

/// Counts the log lines with a text.
fn lines(node: &Limiter, text: &str) -> Result<usize> {
    Ok(node
        .log()?
        .lines()
        .filter(|line| line.contains(text))
        .count())
}

/// Starts a node with its own ACL user of the store.
fn start_as(store: &Store, user: &str, number: usize, node: &str) -> Result<Limiter> {
    let text = configuration(store, number, (node, &["a", "b"]), LIMITS, "");
    start(store, number, &text.replace("edge@", &format!("{user}@")))
}

/// With separate users, a node can be shut out.
#[test]
fn each_node_has_a_user_of_its_own() -> Result<()> {
    let store = Store::start(2)?;
    for node in ["a", "b"] {
        let user = format!("edge-{node}");
        let rights: Vec<_> = RIGHTS.split(' ').collect();
        let reported =
            store.command(&[&["ACL", "SETUSER", &user, "on", ">hush"], &rights[..]].concat())?;
        ensure!(reported.trim() == "OK", "{reported}");
    }
    let a = start_as(&store, "edge-a", 1, "a")?;
    let b = start_as(&store, "edge-b", 2, "b")?;
    for node in [&a, &b] {
        wait_until(node, shares_all)?;
    }
    a.show(&["ban", "192.0.2.1", "--for", "1h"])?;
    wait_for(&b, "192.0.2.1", 1)?;
    let flood = Flood::of_node(&store, 1)?;
    wait_for_share(&a, |share| share > 950)?;
    flood.stop()?;
    store.command(&["ACL", "SETUSER", "edge-a", "off"])?;
    store.command(&["CLIENT", "KILL", "USER", "edge-a"])?;
    wait_until(&a, |status| status["connected"] == false)?;
    b.show(&["ban", "192.0.2.2", "--for", "1h"])?;
    thread::sleep(QUIET);
    ensure!(bans_of(&a, "192.0.2.2")?.is_empty());
    ensure!(shares_all(&status(&b)?), "{:#}", status(&b)?);
    for node in [a, b] {
        ensure!(node.stop()?.success());
    }
    Ok(())
}

/// Without the right to one command, or to the keys of leases and known sources, each part that needs it logs that
/// once. All share again when the right is added.
#[test]
fn each_right_that_is_missing_is_reported() -> Result<()> {
    let fleet = Fleet::with(&["a"], LIMITS)?;
    let a = &fleet.nodes[0];
    let without = |rights: &str, missing: &str| {
        wait_until(a, shares_all)?;
        set_user(&fleet.store, &rights.split(' ').collect::<Vec<_>>())?;
        (fleet.store).command(&["CLIENT", "KILL", "TYPE", "normal"])?;
        let says = |error: &Value| error.as_str().is_some_and(|error| error.contains(missing));
        // Leases may notice the end of their connection late.
        wait_until(a, |status| {
            let errors = errors(status);
            errors.iter().any(|error| says(error))
                && errors.iter().all(|error| error.is_null() || says(error))
        })
    };
    let keys = format!("resetkeys {KEYS_OF_BANS}");
    let reported = without(&keys, "add '~limiter:{edge}:* +")?;
    ensure!(reported["connected"] == true, "{reported:#}");
    // Each part tries again several times.
    thread::sleep(QUIET);
    for missing in [
        "'hmget' of 'limiter:{edge}:leases'",
        "'hmget' of 'limiter:{edge}:sources'",
    ] {
        ensure!(lines(a, missing)? == 1, "{}", a.log()?);
    }
    set_user(&fleet.store, &["~limiter:{edge}:*"])?;
    for command in COMMANDS {
        let reported = without(&format!("-{command}"), &format!("no right to '{command}'"))?;
        println!("{command}: {:?}", errors(&reported));
        set_user(&fleet.store, &[&format!("+{command}")])?;
    }
    wait_until(a, shares_all)?;

    // Another database needs one more right.
    let text = configuration(&fleet.store, 1, ("a", &["a"]), LIMITS, "").replace("/0'", "/1'");
    let [a] = <[Limiter; 1]>::try_from(fleet.nodes)
        .ok()
        .context("one node")?;
    ensure!(a.stop()?.success());
    let a = start(&fleet.store, 1, &text)?;
    let reported = wait_until(&a, |status| {
        errors(status).iter().all(|error| error.is_string())
    })?;
    println!("{:?}", errors(&reported));
    ensure!(a.stop()?.success());
    Ok(())
}
