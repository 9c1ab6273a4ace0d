//! Addresses that are translated, and connections of the host's own.

use std::net::{SocketAddr, TcpStream};

use anyhow::{Context as _, Result, ensure};
use testbed::Limiter;

use super::{
    super::{
        CLIENT, CLIENT_V6, LIMIT, PORT, Server, assert_counted, connect, connect_to, counted, fill,
        policy,
    },
    SERVER, Scene, assert_tracked, tracked,
};
use crate::forwarding::{nft, synproxy};

/// Where clients find the server behind the host.
const PUBLISHED: u16 = 7002;

/// As for a container: the host's port leads to the server, which sees the host as its client.
const PUBLISH: &str = "\
table ip nat {
  chain prerouting {
    type nat hook prerouting priority dstnat
    ip daddr 10.77.0.1 tcp dport 7002 dnat to 10.99.0.2:7001
  }
  chain postrouting {
    type nat hook postrouting priority srcnat
    ip daddr 10.99.0.2 masquerade
  }
}
";

/// Tracks everything that comes to the host itself, or goes from it.
const TRACK_OWN: &str = "\
table inet own {
  chain input {
    type filter hook input priority filter
    ct state invalid counter
  }
  chain output {
    type filter hook output priority filter
    ct state invalid counter
  }
}
";

/// Leads the published port to the host itself.
const REDIRECT: &str = "\
table ip nat {
  chain prerouting {
    type nat hook prerouting priority dstnat
    tcp dport 7002 redirect to :7001
  }
}
";

fn published() -> Result<SocketAddr> {
    Ok(SocketAddr::new("10.77.0.1".parse()?, PUBLISHED))
}

/// A published port counts for its client, under the addresses and ports that the client uses.
#[test]
fn translated_connections_count_as_their_packets_are() -> Result<()> {
    let scene = Scene::new()?;
    let pair = &scene.forwarding.pair;
    nft(&pair.server, PUBLISH)?;
    let configuration = format!(
        "limits: {{Web: {{id: ipAddress, cost: connections, limit: {LIMIT}, match: {{protocol: tcp, \
         destination: 10.77.0.1, destination-port: {PUBLISHED}}}}}}}\nconnections: tracked\n"
    );
    let limiter = scene.start(&configuration)?;
    let open = || -> Result<_> {
        Ok((
            connect_to(pair, CLIENT, published()?)?,
            scene.server.accept()?,
        ))
    };
    let mut held = Vec::new();
    for _ in 0..LIMIT {
        held.push(open()?);
    }
    let (_, serving) = held.last().context("it is open")?;
    ensure!(serving.peer_addr()?.ip().to_canonical().to_string() == "10.99.0.1");
    assert_tracked(&limiter, LIMIT as u64)?;
    ensure!(connect_to(pair, CLIENT, published()?).is_err());
    ensure!(limiter.explain(CLIENT)?["limits"][0]["connections"] == LIMIT);
    // Straight to the server is another destination, which the limit does not count.
    let _straight = scene.open(CLIENT)?;
    assert_tracked(&limiter, LIMIT as u64)?;
    drop(held);
    assert_tracked(&limiter, 0)
}

/// Fails unless so many are counted soon and then on, all of them by their sockets.
fn tracked_by_none(limiter: &Limiter, expected: u64) -> Result<()> {
    assert_counted(limiter, expected)?;
    // Two looks later nothing else has been found.
    std::thread::sleep(std::time::Duration::from_millis(2500));
    assert_counted(limiter, expected)?;
    let status = limiter.status()?;
    ensure!(status["connections"]["tracked"] == 0, "{status}");
    Ok(())
}

/// A connection of the host's own sockets counts once: its socket counts it.
#[test]
fn own_connections_count_once() -> Result<()> {
    let scene = Scene::new()?;
    let pair = &scene.forwarding.pair;
    let own = Server::new(&pair.server)?;
    nft(&pair.server, TRACK_OWN)?;
    let limiter = scene.start(&tracked("ipAddress"))?;
    for from in [CLIENT, CLIENT_V6] {
        let open = fill(pair, &own, from)?;
        tracked_by_none(&limiter, LIMIT as u64)?;
        ensure!(connect(pair, from).is_err(), "{from} has one more");
        drop(open);
        assert_counted(&limiter, 0)?;
    }
    // A connection that the host opens counts for its peer only where `match` counts incoming packets:
    // its own port is not the limit's.
    let server = SocketAddr::new(SERVER.parse()?, PORT);
    let opened = pair.server.enter(|| Ok(TcpStream::connect(server)?))?;
    let _held = (opened, scene.server.accept()?);
    tracked_by_none(&limiter, 0)
}

/// One that the host redirects to itself counts by its socket, under the port of that.
#[test]
fn redirected_connections_count_once() -> Result<()> {
    let scene = Scene::new()?;
    let pair = &scene.forwarding.pair;
    let own = Server::new(&pair.server)?;
    nft(&pair.server, REDIRECT)?;
    let everything = policy("ipAddress", "").replace(&format!(", destination-port: {PORT}"), "");
    ensure!(!everything.contains("7001"), "{everything}");
    let limiter = scene.start(&format!("{everything}connections: tracked\n"))?;
    let mut open = Vec::new();
    for _ in 0..LIMIT {
        open.push((connect_to(pair, CLIENT, published()?)?, own.accept()?));
    }
    tracked_by_none(&limiter, LIMIT as u64)?;
    ensure!(connect_to(pair, CLIENT, published()?).is_err());
    drop(open);
    assert_counted(&limiter, 0)?;
    ensure!(counted(&limiter)? == 0);
    Ok(())
}

/// A connection with a handshake by nftables' synproxy counts as others do.
#[test]
fn connections_of_a_synproxy_count() -> Result<()> {
    let scene = Scene::new()?;
    synproxy(&scene.forwarding.pair.server)?;
    let limiter = scene.start(&tracked("ipAddress"))?;
    let mut clients = Vec::new();
    for _ in 0..LIMIT {
        // The proxy takes its time to connect to the server: do not wait for it.
        clients.push(scene.connect(CLIENT)?);
    }
    assert_tracked(&limiter, LIMIT as u64)?;
    scene.assert_full(CLIENT)?;
    drop(clients);
    for _ in 0..LIMIT {
        drop(scene.server.accept()?);
    }
    assert_tracked(&limiter, 0)
}

/// An address that only a route makes local is none of the host's interfaces: once looks have found the
/// socket, it counts alone.
#[test]
fn what_a_route_makes_local_counts_once_in_the_end() -> Result<()> {
    const LOCAL: &str = "10.99.1.5";
    let scene = Scene::new()?;
    let pair = &scene.forwarding.pair;
    let own = Server::new(&pair.server)?;
    nft(&pair.server, TRACK_OWN)?;
    pair.server
        .ip(&["route", "add", "local", "10.99.1.0/24", "dev", "lo"])?;
    pair.client
        .ip(&["route", "add", "10.99.1.0/24", "via", "10.77.0.1"])?;
    let limiter = scene.start(&tracked("ipAddress"))?;
    let client = connect_to(pair, CLIENT, SocketAddr::new(LOCAL.parse()?, PORT))?;
    let open = (client, own.accept()?);
    tracked_by_none(&limiter, 1)?;
    drop(open);
    assert_counted(&limiter, 0)
}
