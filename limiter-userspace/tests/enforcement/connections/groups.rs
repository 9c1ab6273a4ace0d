//! Limits that share one count.

use std::net::{SocketAddr, TcpStream};

use anyhow::{Context as _, Result, ensure};

use super::{AT_ONCE, CLIENT, PATIENCE, PORT, Server, start};
use crate::pair;

/// Another port of the same server.
const OTHER: u16 = PORT + 1;

/// At most five connections to both ports, and to the other port only while there are fewer than three.
const POLICY: &str = "limits: {\
    Both: {id: ipAddress, cost: connections, limit: 5, group: front, match: {destination-port: [7001, 7002]}}, \
    Other: {id: ipAddress, cost: connections, limit: 3, group: front, match: {destination-port: 7002}}}\n";

#[test]
fn connections_of_a_group_count_together_and_once() -> Result<()> {
    let pair = pair()?;
    let servers = [PORT, OTHER].map(|port| Server::at(&pair.server, port, None));
    let [first, other] = servers;
    let (first, other) = (first?, other?);
    let limiter = start(&pair, POLICY)?;
    let connect = |port| {
        let server = SocketAddr::new("10.77.0.1".parse()?, port);
        pair.client
            .enter(|| Ok(TcpStream::connect_timeout(&server, AT_ONCE)?))
    };
    let mut open = Vec::new();
    for number in 0..3 {
        let client = connect(OTHER).with_context(|| format!("connection {number}"))?;
        open.push((client, other.accept()?));
    }
    ensure!(
        connect(OTHER).is_err(),
        "a fourth to the other port is let in"
    );
    for number in 3..5 {
        let client = connect(PORT).with_context(|| format!("connection {number}"))?;
        open.push((client, first.accept()?));
    }
    ensure!(connect(PORT).is_err(), "a sixth is let in");
    for limit in ["Both", "Other"] {
        let status = limiter.status()?;
        ensure!(status["limits"][limit]["open"] == 5, "{limit}: {status}");
    }
    // Two of five are gone: only the other port still has no room.
    open.truncate(3);
    let end = std::time::Instant::now() + PATIENCE;
    while connect(PORT).is_err() {
        ensure!(std::time::Instant::now() < end, "no room for {CLIENT}");
    }
    ensure!(
        connect(OTHER).is_err(),
        "no room is left for the other port"
    );
    let explained = limiter.explain(CLIENT)?;
    let text = explained.to_string();
    ensure!(text.contains("Both") && text.contains("Other"), "{text}");
    Ok(())
}
