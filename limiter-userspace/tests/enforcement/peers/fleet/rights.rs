//! A store with an ACL user that lacks some of the rights in docs/fleet.md.

use std::{
    thread,
    time::{Duration, Instant},
};

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

/// The keys of a user from before known sources and leases.
const OLD_KEYS: [&str; 5] = ["bans", "news", "nodes", "push", "answers"];

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

/// How soon nodes share again with the right.
const SOON: Duration = Duration::from_secs(5);

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

/// After an upgrade, the user has the old keys: bans are shared, each node has the minimum share, and
/// each part logs once the right to add. Once it is added, everything is shared without a restart.
#[test]
fn a_user_of_before_shares_bans_and_says_what_is_missing() -> Result<()> {
    let store = Store::start(2)?;
    let keys = OLD_KEYS.map(|key| format!("~limiter:{{edge}}:{key}"));
    let keys: Vec<_> = keys.iter().map(String::as_str).collect();
    set_user(&store, &[&["resetkeys"], &keys[..]].concat())?;
    let fleet = Fleet::among(store, &["a", "b"], LIMITS, "")?;
    let [a, b] = &fleet.nodes[..] else {
        unreachable!()
    };
    a.show(&["ban", "192.0.2.1", "--for", "1h"])?;
    wait_for(b, "192.0.2.1", 1)?;
    let leases = "its user has no right to 'hmget' of 'limiter:{edge}:leases': add '~limiter:{edge}:* +hmget' to its ACL";
    let sources = "its user has no right to 'xrevrange' of 'limiter:{edge}:sources-news': add '~limiter:{edge}:* \
                   +xrevrange' to its ACL";
    wait_until(a, |status| {
        status["leases_error"] == leases && status["sources"]["error"] == sources
    })?;
    for node in [a, b] {
        wait_for_share(node, |share| share == 25)?;
    }
    thread::sleep(QUIET);
    let shown = a.show(&["fleet", "status"])?;
    for reported in [leases, sources] {
        ensure!(shown.matches(reported).count() == 1, "{shown}");
        ensure!(lines(a, reported)? == 1, "{}", a.log()?);
    }
    ensure!(status(a)?["connected"] == true);
    b.show(&["unban", "192.0.2.1"])?;
    wait_for(a, "192.0.2.1", 0)?;

    set_user(&fleet.store, &["~limiter:{edge}:*"])?;
    let begun = Instant::now();
    for node in [a, b] {
        wait_until(node, shares_all)?;
    }
    let took = begun.elapsed();
    println!("all was shared {took:?} after the user had the rights");
    ensure!(took < SOON, "{took:?}");
    fleet.stop()
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

/// Without the right to one command, each part that needs it logs that once, and recovers when the right is
/// added.
#[test]
fn each_right_that_is_missing_is_reported() -> Result<()> {
    let fleet = Fleet::with(&["a"], LIMITS)?;
    let a = &fleet.nodes[0];
    let connect_anew = || fleet.store.command(&["CLIENT", "KILL", "TYPE", "normal"]);
    for command in COMMANDS {
        wait_until(a, shares_all)?;
        set_user(&fleet.store, &[&format!("-{command}")])?;
        connect_anew()?;
        let missing = format!("no right to '{command}'");
        let says = |error: &Value| error.as_str().is_some_and(|error| error.contains(&missing));
        wait_until(a, |status| errors(status).iter().any(|error| says(error)))?;
        thread::sleep(QUIET);
        // Leases may notice the end of their connection late.
        let reported = wait_until(a, |status| {
            let mut errors = errors(status).into_iter();
            errors.all(|error| error.is_null() || says(error))
        })?;
        let parts = errors(&reported).iter().filter(|error| says(error)).count();
        println!("{command}: {:?}", errors(&reported));
        ensure!(
            errors(&reported)
                .iter()
                .all(|error| error.is_null() || says(error)),
            "{reported:#}"
        );
        ensure!(
            lines(a, &missing)? == parts,
            "{command}, {parts}\n{}",
            a.log()?
        );
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
