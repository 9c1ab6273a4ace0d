//! Multipath TCP: each subflow is a connection of its own, of the address that it comes from.

use std::{io::Write as _, net::TcpStream, thread, time::Instant};

use anyhow::{Result, ensure};
use testbed::{Limiter, Namespace, Pair};

use super::{
    CLIENT, Kind, LIMIT, PATIENCE, Server, assert_counted,
    soak::{add_subflows, allow_all, listed, stack_count},
    start,
};
use crate::pair;

/// The address that second subflows come from.
const SECOND: &str = "10.78.0.2";

/// Returns how many second subflows the server's stack has made.
fn joined(server: &Namespace) -> Result<u64> {
    stack_count(server, "MPJoinAckRx")
}

/// Connects, and sends data that lets the client's kernel add a subflow.
fn open(pair: &Pair, server: &Server) -> Result<(TcpStream, TcpStream)> {
    let mut client = Kind::Multipath.connect(pair, CLIENT)?;
    let mut serving = server.accept()?;
    client.write_all(b"!")?;
    serving.write_all(b"!")?;
    Ok((client, serving))
}

fn open_by(limiter: &Limiter, address: &str) -> Result<u64> {
    let explained = limiter.explain(address)?;
    Ok(explained["limits"][0]["connections"].as_u64().unwrap_or(0))
}

#[test]
fn each_subflow_counts_for_the_address_that_it_comes_from() -> Result<()> {
    let pair = pair()?;
    allow_all(&pair)?;
    let Some(server) = Kind::Multipath.serve(&pair.server)? else {
        println!("this kernel has no multipath TCP");
        return Ok(());
    };
    add_subflows(&pair, SECOND)?;
    let policy = format!(
        "limits: {{Web: {{id: ipAddress, cost: connections, limit: {LIMIT}, match: {{protocol: \
         tcp, destination-port: {}}}}}}}\noverrides: {{Web:{SECOND}: {{limit: 1}}}}\n",
        Kind::Multipath.port()
    );
    let limiter = start(&pair, &policy)?;
    let mut held = Vec::new();
    for number in 0..LIMIT {
        held.push(open(&pair, &server)?);
        let end = Instant::now() + PATIENCE;
        while number == 0 && joined(&pair.server)? == 0 {
            ensure!(Instant::now() < end, "there is no second subflow");
            thread::yield_now();
        }
    }
    // The second connection's second subflow finds no room, and its first one goes on.
    assert_counted(&limiter, LIMIT as u64 + 1)?;
    ensure!(listed(&pair.server)? == LIMIT as u64 + 1);
    ensure!(open_by(&limiter, CLIENT)? == LIMIT as u64);
    ensure!(open_by(&limiter, SECOND)? == 1);
    let end = Instant::now() + PATIENCE;
    while limiter.status()?["reasons"]["too_many_connections"].as_u64() < Some(1) {
        ensure!(Instant::now() < end, "no subflow is refused");
        thread::yield_now();
    }
    drop(held);
    assert_counted(&limiter, 0)
}
