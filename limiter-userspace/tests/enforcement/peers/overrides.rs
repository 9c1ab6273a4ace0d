//! A DNS server's zones, some with other rates, for all clients or for one; and a reload that changes one rate.

use std::net::{IpAddr, SocketAddr, UdpSocket};

use anyhow::{Context as _, Result, ensure};
use testbed::Pair;

use super::{server::Server, start, zones::query};
use crate::{PATIENCE, pair, server_for};

/// No token comes back while the test runs.
const CONFIGURATION: &str = "\
zones: [a.test, b.test, c.test]
limits:
  Zones: {id: [ipAddress, zone], cost: packets, burst: 1, count: 1, period: 10h}
overrides:
  Zones:b.test: {burst: 3, count: 1, period: 10h}
  Zones:10.77.0.3: {burst: 2, count: 1, period: 10h}
  Zones:10.77.0.3:b.test: {burst: 5, count: 1, period: 10h}
  Zones:fd77:1:1::/64:a.test: {burst: 4, count: 1, period: 10h}
";

/// The most queries that a test sends at once.
const QUERIES: u16 = 7;

/// Sends this many queries to a zone's server from an address; returns how many it answers.
fn responses(pair: &Pair, from: &str, zone: &str) -> Result<usize> {
    let from: IpAddr = from.parse()?;
    let server = SocketAddr::new(server_for(from)?, 53);
    let socket = (pair.client).enter(|| Ok(UdpSocket::bind(SocketAddr::new(from, 0))?))?;
    socket.connect(server)?;
    socket.set_read_timeout(Some(PATIENCE))?;
    for number in 0..QUERIES {
        socket.send(&query(number, &format!("n{number}.{zone}")))?;
    }
    // No limit counts the last query, and the server answers in order: after its response, no other one
    // comes.
    socket.send(&query(QUERIES, "of.no.zone"))?;
    for answered in 0.. {
        let mut response = [0; 512];
        let length = socket.recv(&mut response).context("no response")?;
        if response[..2] == QUERIES.to_be_bytes() {
            return Ok(answered);
        }
        // No error, and one response.
        ensure!(
            length > 12 && response[3] % 16 == 0 && response[7] == 1,
            "{:?}",
            &response[..12]
        );
    }
    unreachable!("it asks for so few")
}

#[test]
fn zones_have_rates_of_their_own_and_clients_for_them() -> Result<()> {
    let pair = pair()?;
    let zones = ["a.test", "b.test", "c.test"].map(ToOwned::to_owned);
    let _nsd = Server::nsd_with_zones(&pair, &zones)?;
    let limiter = start(&pair, CONFIGURATION, "native")?;
    for (from, zone, expected) in [
        ("10.77.0.2", "a.test", 1),
        ("10.77.0.2", "b.test", 3),
        ("10.77.0.3", "a.test", 2),
        ("10.77.0.3", "b.test", 5),
        ("10.77.0.3", "c.test", 2),
        ("fd77:1:1::1", "a.test", 4),
        ("fd77:1:1::1", "b.test", 3),
        ("fd77:1:1::1", "c.test", 1),
    ] {
        let found = responses(&pair, from, zone)?;
        ensure!(found == expected, "{from} {zone}: {found}");
    }
    // Buckets stay; their debts are judged by the new rate.
    let changed = CONFIGURATION.replace("b.test: {burst: 5", "b.test: {burst: 7");
    limiter.configure(&changed)?;
    limiter.show(&["reload"])?;
    for (from, zone, expected) in [
        ("10.77.0.3", "b.test", 2),
        ("10.77.0.3", "a.test", 0),
        ("10.77.0.2", "b.test", 0),
    ] {
        let found = responses(&pair, from, zone)?;
        ensure!(
            found == expected,
            "after the reload: {from} {zone}: {found}"
        );
    }
    Ok(())
}
