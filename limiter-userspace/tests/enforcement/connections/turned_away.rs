//! Clients that a limit turns away, by standing and by a sieve, and the answers to them.

use std::{io::ErrorKind, thread, time::Duration};

use anyhow::{Context as _, Result, ensure};

use super::{
    CLIENT, CLIENT_V6, LIMIT, PORT, Server, assert_full, assert_room, connect, fill, policy, start,
};
use crate::pair;

const OTHER: &str = "10.77.0.3";

/// Longer than the daemon takes to measure a pressure.
const MEASURED: Duration = Duration::from_millis(150);

#[test]
fn whoever_finds_no_room_is_told_so() -> Result<()> {
    let pair = pair()?;
    pair.compute_checksums()?;
    let server = Server::new(&pair.server)?;
    let limiter = start(&pair, &policy("ipAddress", ", deny: reset"))?;
    for from in [CLIENT, CLIENT_V6] {
        let open = fill(&pair, &server, from)?;
        let refused = connect(&pair, from).err().context("one more is let in")?;
        let refused = refused.downcast::<std::io::Error>()?;
        ensure!(
            refused.kind() == ErrorKind::ConnectionRefused,
            "{from}: {refused}"
        );
        drop(open);
        assert_room(&pair, &server, from)?;
    }
    let status = limiter.status()?;
    let reported = &status["limits"]["Web"]["answers"]["reset"];
    ensure!(reported.as_u64() >= Some(2), "{status}");
    Ok(())
}

/// An answer would make a waiting client give up, so only clients without a ticket get one.
#[test]
fn whoever_waits_in_line_is_told_nothing() -> Result<()> {
    let pair = pair()?;
    pair.compute_checksums()?;
    let server = Server::new(&pair.server)?;
    let _limiter = start(&pair, &policy("total", ", deny: reset, queue: {size: 8}"))?;
    let _open = fill(&pair, &server, CLIENT)?;
    let refused = connect(&pair, OTHER).err().context("one more is let in")?;
    let refused = refused.downcast::<std::io::Error>()?;
    ensure!(refused.kind() == ErrorKind::TimedOut, "{refused}");
    Ok(())
}

#[test]
fn slots_are_kept_for_who_is_known() -> Result<()> {
    let pair = pair()?;
    let server = Server::new(&pair.server)?;
    let limits = policy("total", ", reserve: {unknown: 1}");
    let known = format!(
        "lists: [{{name: known, cidr: [{OTHER}]}}]\nstanding: {{proven: known, proven-by: list, visits: off}}\n"
    );
    let limiter = start(&pair, &format!("{limits}{known}"))?;
    let mut open = Vec::new();
    for _ in 0..LIMIT - 1 {
        open.push((connect(&pair, CLIENT_V6)?, server.accept()?));
    }
    assert_full(&pair, CLIENT)?;
    let explained = limiter.show(&["explain", CLIENT])?;
    ensure!(
        explained.contains("the rest is reserved for sources that are better known"),
        "{explained}"
    );
    open.push((connect(&pair, OTHER)?, server.accept()?));
    assert_full(&pair, OTHER)?;
    Ok(())
}

/// As in Traffic Server's plugin: the more connections are open, the more of the busiest clients
/// are rejected.
#[test]
fn a_sieve_presses_by_what_is_open() -> Result<()> {
    const MOST: usize = 10;
    let pair = pair()?;
    let server = Server::new(&pair.server)?;
    let limiter = start(
        &pair,
        &format!(
            "limits: {{Web: {{id: total, cost: connections, limit: {MOST}, ip-rep: busy, \
             match: {{protocol: tcp, destination-port: {PORT}}}}}}}\n\
             ip-rep: [{{name: busy, buckets: 3, size: 5, percentage: 50}}]\n"
        ),
    )?;
    let mut open = Vec::new();
    while let Ok(client) = connect(&pair, CLIENT) {
        open.push((client, server.accept()?));
        thread::sleep(MEASURED);
    }
    // Sources are scored once half of the limit is used, and rejected sooner the more connections
    // are open.
    ensure!((MOST / 2 + 1..MOST).contains(&open.len()), "{}", open.len());
    open.push((connect(&pair, OTHER)?, server.accept()?));
    let status = limiter.status()?;
    ensure!(status["reasons"]["iprep"].as_u64() >= Some(1), "{status}");
    let sieve = limiter.show(&["sieve", "busy", "--json"])?;
    let sieve: serde_json::Value = serde_json::from_str(&sieve)?;
    let used = &sieve[0]["uses"][0];
    ensure!(used["cost"] == "connections", "{sieve}");
    ensure!(used["limit_open"] == 10.0, "{sieve}");
    ensure!(used["limit_per_second"].is_null(), "{sieve}");
    Ok(())
}
