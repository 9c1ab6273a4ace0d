//! The keys with the most open connections: the list matches the counts.

use std::{
    net::TcpStream,
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use testbed::{Limiter, Pair};

use super::{PATIENCE, PORT, Server, connect, start};
use crate::pair;

/// The client that hoards connections.
const HOARDER: &str = "10.77.0.2";

/// Another address, and two addresses of one IPv6 range.
pub(super) const OTHER: &str = "10.77.0.3";
const FIRST_V6: &str = "fd77:1:1::1";
const SECOND_V6: &str = "fd77:1:1:2::1";

/// How many connections the hoarder has open.
const HOARDED: usize = 30;

fn open(
    pair: &Pair,
    server: &Server,
    from: &str,
    number: usize,
) -> Result<Vec<(TcpStream, TcpStream)>> {
    let open = (0..number).map(|_| Ok((connect(pair, from)?, server.accept()?)));
    open.collect::<Result<_>>()
        .with_context(|| format!("connections of {from}"))
}

fn asked(limiter: &Limiter, arguments: &[&str]) -> Result<Value> {
    let shown = limiter.show(&[&["connections", "--json"], arguments].concat())?;
    Ok(serde_json::from_str(&shown)?)
}

/// Fails unless this list appears soon: limit, key, open connections and maximum.
#[track_caller]
pub(super) fn assert_listed(limiter: &Limiter, arguments: &[&str], expected: &Value) -> Result<()> {
    let end = Instant::now() + PATIENCE;
    loop {
        let reported = asked(limiter, arguments)?;
        let keys = reported["keys"].as_array().context("no keys")?.iter();
        let rows = keys.map(|key| json!([key["limit"], key["id"], key["open"], key["most"]]));
        let rows = Value::Array(rows.collect());
        if rows == *expected {
            return Ok(());
        }
        ensure!(Instant::now() < end, "{reported}\nhas not {expected}");
        thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn those_who_have_the_most_are_told_as_they_are_counted() -> Result<()> {
    let pair = pair()?;
    let server = Server::new(&pair.server)?;
    let matching = format!("match: {{protocol: tcp, destination-port: {PORT}}}");
    let limiter = start(
        &pair,
        &format!(
            "limits:\n  Each: {{id: ipAddress, cost: connections, limit: 10, {matching}}}\n  \
             Ranges: {{id: ipv6RangeCIDR, cost: connections, limit: 8, {matching}}}\n  \
             All: {{id: total, cost: connections, limit: 1000, {matching}, exclude: {OTHER}}}\n  \
             Elsewhere: {{id: total, cost: connections, limit: 9, match: {{protocol: tcp, \
             destination-port: 1}}}}\n\
             overrides:\n  Each:{HOARDER}: {{limit: 40}}\n"
        ),
    )?;
    assert_listed(&limiter, &[], &json!([]))?;

    let hoarded = open(&pair, &server, HOARDER, HOARDED)?;
    let mut others = open(&pair, &server, OTHER, 2)?;
    others.extend(open(&pair, &server, FIRST_V6, 4)?);
    others.extend(open(&pair, &server, SECOND_V6, 3)?);
    // Sorted by the used part of the maximum, the largest first.
    let all = HOARDED + 4 + 3;
    assert_listed(
        &limiter,
        &[],
        &json!([
            ["Ranges", "fd77:1:1::/48", 7, 8],
            ["Each", HOARDER, HOARDED, 40],
            ["Each", FIRST_V6, 4, 10],
            ["Each", SECOND_V6, 3, 10],
            ["Each", OTHER, 2, 10],
            ["All", "total", all, 1000],
        ]),
    )?;
    assert_listed(
        &limiter,
        &["--limit", "Each", "-n", "2"],
        &json!([["Each", HOARDER, HOARDED, 40], ["Each", FIRST_V6, 4, 10]]),
    )?;
    let reported = asked(&limiter, &[])?;
    let limits = &reported["limits"];
    ensure!(reported["counted"] == all + 2, "{reported}");
    ensure!(
        limits["Each"] == json!({"open": all + 2, "keys": 4}),
        "{reported}"
    );
    ensure!(
        limits["Ranges"] == json!({"open": 7, "keys": 1}),
        "{reported}"
    );
    ensure!(
        limits["All"] == json!({"open": all, "keys": 1}),
        "{reported}"
    );
    ensure!(
        limits["Elsewhere"] == json!({"open": 0, "keys": 0}),
        "{reported}"
    );
    ensure!(reported["polled_ago_ns"].is_u64(), "{reported}");
    // The kernel's counts agree.
    let explained = limiter.explain(HOARDER)?;
    let limits = explained["limits"].as_array().context("no limits")?;
    let counted = |name: &str| {
        let of_name = limits.iter().find(|limit| limit["limit"] == name);
        of_name.and_then(|limit| limit["connections"].as_u64())
    };
    ensure!(counted("Each") == Some(HOARDED as u64), "{explained}");
    ensure!(counted("All") == Some(all as u64), "{explained}");

    drop((hoarded, others));
    assert_listed(&limiter, &[], &json!([]))
}

/// The keys follow the policy in force, also after a restart of the daemon.
#[test]
fn keys_are_those_of_the_policy_in_force() -> Result<()> {
    let pair = pair()?;
    let server = Server::new(&pair.server)?;
    let policy = |id: &str| {
        format!(
            "limits: {{Web: {{id: {id}, cost: connections, limit: 10}}}}\nsubscribers: {{4711: \
             10.77.0.0/24}}\n"
        )
    };
    let mut limiter = start(&pair, &policy("ipAddress"))?;
    let _open = [
        open(&pair, &server, HOARDER, 3)?,
        open(&pair, &server, OTHER, 2)?,
    ];
    let by_address = json!([["Web", HOARDER, 3, 10], ["Web", OTHER, 2, 10]]);
    assert_listed(&limiter, &[], &by_address)?;
    for (id, expected) in [
        ("regId", json!([["Web", "4711", 5, 10]])),
        (
            "ipv4RangeCIDR, prefix-length: 30",
            json!([["Web", "10.77.0.0/30", 5, 10]]),
        ),
        ("ipAddress", by_address.clone()),
    ] {
        limiter.configure(&policy(id))?;
        limiter.show(&["reload"])?;
        assert_listed(&limiter, &[], &expected)?;
    }
    limiter.terminate()?;
    limiter.restart()?;
    assert_listed(&limiter, &[], &by_address)
}

/// A source with many addresses fills neither the daemon's memory nor the screen, and does not hide a key with more
/// connections.
#[test]
fn of_many_keys_those_with_the_most_are_told() -> Result<()> {
    const MANY: usize = 300;
    const MOST: usize = 20;
    let pair = pair()?;
    let server = Server::new(&pair.server)?;
    let route = ["route", "add", "local", "10.90.0.0/16", "dev", "lo"];
    pair.client.ip(&route)?;
    pair.server
        .ip(&["route", "add", "10.90.0.0/16", "via", HOARDER])?;
    let limiter = start(
        &pair,
        "limits: {Web: {id: ipAddress, cost: connections, limit: 10}}\n",
    )?;
    let mut all = Vec::new();
    for number in 0..MANY {
        let from = format!("10.90.{}.{}", number / 250, number % 250 + 1);
        all.extend(open(&pair, &server, &from, 1)?);
    }
    all.extend(open(&pair, &server, OTHER, 2)?);
    let end = Instant::now() + PATIENCE;
    loop {
        let reported = asked(&limiter, &["-n", "160"])?;
        let keys = reported["keys"].as_array().context("no keys")?;
        let found = &reported["limits"]["Web"];
        if *found == json!({"open": MANY + 2, "keys": MANY + 1}) {
            ensure!(keys.len() == MOST, "{reported}");
            ensure!(keys[0]["id"] == OTHER && keys[0]["open"] == 2, "{reported}");
            ensure!(keys[1..].iter().all(|key| key["open"] == 1), "{reported}");
            return Ok(());
        }
        ensure!(Instant::now() < end, "{reported}");
        thread::sleep(Duration::from_millis(50));
    }
}
