//! Limits per destination: all clients share the connections of one of the host's addresses, and another address has
//! its own.

use std::net::{SocketAddr, TcpStream};

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use testbed::{Limiter, Pair};

use super::{
    CLIENT, LIMIT, PORT, Server, connect_to,
    keys::{OTHER, assert_listed},
    policy, start,
};
use crate::{CLIENTS, SERVERS, networks};

const FIRST: &str = "10.77.0.1";
const SECOND: &str = "10.77.0.9";
const FIRST_V6: &str = "fd77::1";
const CLIENT_V6: &str = "fd77:1:1::1";

/// A server with two IPv4 addresses, each limited.
struct Scene {
    pair: Pair,
    server: Server,
    limiter: Limiter,
}

impl Scene {
    fn new(configuration: &str) -> Result<Self> {
        let second = format!("{SECOND}/24");
        let servers = [&SERVERS[..], &[&second]].concat();
        let pair = Pair::new(&networks(&CLIENTS)?, &networks(&servers)?)?;
        let server = Server::new(&pair.server)?;
        let limiter = start(&pair, configuration)?;
        Ok(Self {
            pair,
            server,
            limiter,
        })
    }

    fn open(&self, from: &str, to: &str) -> Result<(TcpStream, TcpStream)> {
        let client = connect_to(&self.pair, from, SocketAddr::new(to.parse()?, PORT))
            .with_context(|| format!("{from} to {to}"))?;
        Ok((client, self.server.accept()?))
    }

    fn assert_refused(&self, from: &str, to: &str) -> Result<()> {
        let to = SocketAddr::new(to.parse()?, PORT);
        ensure!(
            connect_to(&self.pair, from, to).is_err(),
            "{from} to {to} is let in"
        );
        Ok(())
    }

    /// Returns the buckets' ids from `limiter explain`, each with its connections left.
    fn left(&self, more: &[&str]) -> Result<Value> {
        let arguments = [&["explain", OTHER, "--json"], more].concat();
        let explained: Value = serde_json::from_str(&self.limiter.show(&arguments)?)?;
        let limits = explained["limits"].as_array().context("no limits")?.iter();
        let left = limits.map(|limit| json!([limit["id"], limit["remaining"]]));
        Ok(left.collect())
    }
}

#[test]
fn each_address_of_the_host_has_its_own_connections() -> Result<()> {
    let scene = Scene::new(&policy("destination", ""))?;
    let mut open = Vec::new();
    for _ in 0..LIMIT {
        open.push(scene.open(CLIENT, FIRST)?);
    }
    // All clients share the destination's connections.
    scene.assert_refused(OTHER, FIRST)?;
    let others = [
        scene.open(OTHER, SECOND)?,
        scene.open(CLIENT, SECOND)?,
        scene.open(CLIENT_V6, FIRST_V6)?,
    ];
    assert_eq!(
        scene.left(&[])?,
        json!([[FIRST, 0], [SECOND, LIMIT - 2]]),
        "the host's own of the family"
    );
    assert_eq!(scene.left(&["--to", SECOND])?, json!([[SECOND, LIMIT - 2]]));
    // Forwarded packets may have any destination.
    assert_eq!(
        scene.left(&["--to", "192.0.2.1"])?,
        json!([["192.0.2.1", LIMIT]])
    );
    assert_listed(
        &scene.limiter,
        &[],
        &json!([
            ["Web", FIRST, LIMIT, LIMIT],
            ["Web", SECOND, 2, LIMIT],
            ["Web", FIRST_V6, 1, LIMIT],
        ]),
    )?;
    drop((open, others));
    assert_listed(&scene.limiter, &[], &json!([]))?;
    scene.open(OTHER, FIRST)?;
    Ok(())
}

#[test]
fn each_address_of_the_host_has_its_own_handshakes() -> Result<()> {
    let scene = Scene::new(&format!(
        "limits: {{Web: {{id: destination, cost: handshakes, burst: 2, count: 1, period: 1h, \
         match: {{protocol: tcp, destination-port: {PORT}}}}}}}\n"
    ))?;
    drop(scene.open(CLIENT, FIRST)?);
    drop(scene.open(OTHER, FIRST)?);
    scene.assert_refused(CLIENT, FIRST)?;
    scene.assert_refused(OTHER, FIRST)?;
    drop(scene.open(CLIENT, SECOND)?);
    assert_eq!(scene.left(&[])?, json!([[FIRST, 0], [SECOND, 1]]));
    scene.limiter.show(&["reset", CLIENT, "--to", FIRST])?;
    assert_eq!(scene.left(&[])?, json!([[FIRST, 2], [SECOND, 1]]));
    drop(scene.open(OTHER, FIRST)?);
    Ok(())
}
