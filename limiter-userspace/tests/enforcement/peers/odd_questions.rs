//! Odd queries to real servers: each answered query is counted under the name that the server answered.

use std::{
    net::{SocketAddr, UdpSocket},
    time::Duration,
};

use anyhow::{Context as _, Result, ensure};
use testbed::Pair;

use super::{server::Server, start, zones::query};
use crate::{pair, wait};

/// How long to wait for a response that may not come.
const WHILE: Duration = Duration::from_millis(300);

const NAME: &str = "www.example.test";

/// Odd queries for the name; some servers answer them.
fn odd() -> Vec<(&'static str, Vec<u8>)> {
    let plain = || query(7, NAME);
    let end = plain().len() - 5;
    let ending = |pointer: u8| {
        let mut query = plain();
        query.splice(end..=end, [0xc0, pointer]);
        query
    };
    let with = |byte: usize, value: u8| {
        let mut query = plain();
        query[byte] = value;
        query
    };
    let behind = u8::try_from(end).expect("a short query");
    let long = ["a"; 121].join(".");
    vec![
        ("a pointer to the number of additional records", ending(10)),
        ("a pointer to the flags", ending(2)),
        ("a pointer to the type", ending(behind + 2)),
        ("a pointer to the name", ending(12)),
        ("a long name", query(7, &format!("{long}.{NAME}"))),
        ("a class that stands for all", with(plain().len() - 1, 255)),
        ("two questions", with(5, 2)),
        ("no type", plain()[..=end].to_vec()),
    ]
}

/// Sends a query; returns whether an address comes back.
fn is_answered(pair: &Pair, query: &[u8]) -> Result<bool> {
    let server: SocketAddr = "10.77.0.1:53".parse()?;
    let socket = pair.client.enter(|| {
        let socket = UdpSocket::bind("10.77.0.2:0")?;
        socket.connect(server)?;
        socket.set_read_timeout(Some(WHILE))?;
        Ok(socket)
    })?;
    socket.send(query)?;
    let mut response = [0; 1024];
    let length = socket.recv(&mut response).unwrap_or_default();
    // No error, and one response.
    Ok(length > 12 && response[3] % 16 == 0 && response[7] == 1)
}

/// A function that starts a server.
type Start = fn(&Pair) -> Result<Server>;

#[test]
fn odd_queries_are_counted_or_dropped() -> Result<()> {
    let servers: [(&str, Start, usize); 3] = [
        ("NSD", Server::nsd, 1),
        ("BIND", Server::bind, 2),
        ("dnsmasq", Server::dnsmasq, 4),
    ];
    for (name, server, least) in servers {
        let pair = pair()?;
        let _server = server(&pair)?;
        wait(|| is_answered(&pair, &query(1, NAME)))?;
        let mut answered = Vec::new();
        for (what, query) in odd() {
            if is_answered(&pair, &query)? {
                answered.push(what);
            }
        }
        println!("{name} answers {answered:?}");
        ensure!(answered.len() >= least, "{name}: {answered:?}");
        for id in ["zone", "question"] {
            let policy = format!(
                "zones: [example.test]\nlimits: {{Names: {{id: {id}, cost: packets, burst: 1, count: 1, period: 1h}}}}\n"
            );
            let limiter = start(&pair, &policy, "generic")?;
            ensure!(is_answered(&pair, &query(1, NAME))?, "{name} {id}");
            ensure!(!is_answered(&pair, &query(1, NAME))?, "{name} {id}");
            for (what, query) in odd() {
                ensure!(!is_answered(&pair, &query)?, "{name} {id}: {what}");
            }
            let status = limiter.status()?;
            let malformed = status["reasons"]["malformed_dns"].as_u64();
            ensure!(malformed.context("no count")? > 4, "{status:#}");
            ensure!(limiter.stop()?.success());
        }
    }
    Ok(())
}
