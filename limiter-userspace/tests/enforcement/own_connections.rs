//! Connections that the host itself began: limits do not slow their answers, and hold everybody else.

use std::{
    io::{ErrorKind, Read as _, Write as _},
    net::{IpAddr, Shutdown, SocketAddr, TcpListener, TcpStream},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, ensure};
use testbed::{CLIENT_INTERFACE, Frame, Limiter, Pair, RawSender};

use crate::{PATIENCE, pair, server_for, start};

/// The addresses of the peer that the host downloads from.
const PEERS: [&str; 2] = ["10.77.0.2", "fd77:1:1::1"];

const PORT: u16 = 8080;

/// A download of thousands of packets; the limit would admit a few each second.
const BYTES: usize = 20_000_000;

/// How many forged packets come at once.
const FORGED: usize = 1_000;

/// The limit's burst, and its tokens in a minute.
const BURST: u64 = 20;

fn policy(rest: &str) -> String {
    format!(
        "limits: {{A: {{id: ipAddress, cost: packets, burst: {BURST}, count: {BURST}, \
         period: 1m}}}}\n{rest}"
    )
}

/// A peer in the client's namespace, to which the limited host connects.
struct Peer {
    address: SocketAddr,
    listener: TcpListener,
}

impl Peer {
    fn new(pair: &Pair, address: &str) -> Result<Self> {
        let address = SocketAddr::new(address.parse()?, PORT);
        let listener = pair.client.enter(|| Ok(TcpListener::bind(address)?))?;
        Ok(Self { address, listener })
    }

    /// Has the host connect; returns its end and the peer's.
    fn connected(&self, pair: &Pair) -> Result<(TcpStream, TcpStream)> {
        let own = pair.server.enter(|| {
            let own = TcpStream::connect_timeout(&self.address, PATIENCE)?;
            own.set_read_timeout(Some(PATIENCE))?;
            Ok(own)
        })?;
        let (peer, _) = self.listener.accept()?;
        peer.set_write_timeout(Some(PATIENCE))?;
        Ok((own, peer))
    }

    /// Has the host fetch some bytes within a time; returns how many it got.
    fn fetch(&self, pair: &Pair, within: Duration) -> Result<usize> {
        let (mut own, mut peer) = self.connected(pair)?;
        thread::scope(|scope| {
            // It fails when the host gives up.
            scope.spawn(move || peer.write_all(&vec![7; BYTES]));
            let begun = Instant::now();
            let mut buffer = vec![0; 1 << 16];
            let mut got = 0;
            while got < BYTES && begun.elapsed() < within {
                own.set_read_timeout(Some(within))?;
                match own.read(&mut buffer) {
                    Ok(0) => break,
                    Ok(read) => got += read,
                    Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                    Err(error) => return Err(error.into()),
                }
            }
            // It resets the connection, so that the peer gives up, too.
            drop(own);
            Ok(got)
        })
    }

    /// Sends forged segments of the peer, from one port to another, which open no connection.
    fn forge(&self, pair: &Pair, from: u16, to: u16) -> Result<()> {
        let source: IpAddr = self.address.ip();
        let segment = Frame::new(source, server_for(source)?).tcp_ack(from, to, 1, 1)?;
        let sender = RawSender::new(&pair.client, CLIENT_INTERFACE)?;
        sender.send_frames(&vec![segment; FORGED])?;
        Ok(())
    }
}

/// Returns how many packets had a reason.
fn packets(limiter: &Limiter, reason: &str) -> Result<u64> {
    let status = limiter.status()?;
    Ok(status["reasons"][reason].as_u64().unwrap_or_default())
}

/// Waits until so many more packets than before have a reason.
fn wait(limiter: &Limiter, reason: &str, wanted: u64) -> Result<()> {
    let is_so = crate::wait(|| Ok(packets(limiter, reason)? >= wanted));
    is_so.with_context(|| format!("{wanted} packets are not {reason}"))
}

/// A download goes on as if there were no limit, and a forger of its source gains nothing.
#[test]
fn a_download_is_not_slowed_and_a_forged_flood_is_held() -> Result<()> {
    for address in PEERS {
        let pair = pair()?;
        let peer = Peer::new(&pair, address)?;
        let limiter = start(&pair, &policy(""))?;
        assert_eq!(peer.fetch(&pair, PATIENCE)?, BYTES, "{address}");
        assert!(packets(&limiter, "own_connection")? > 100);

        // While a connection is open, only its own ports are exempt.
        let (own, peers_end) = peer.connected(&pair)?;
        let port = own.local_addr()?.port();
        let before = packets(&limiter, "over_limit")?;
        for (from, to) in [(PORT, port ^ 1), (PORT + 1, port), (port, PORT)] {
            peer.forge(&pair, from, to)?;
        }
        wait(&limiter, "over_limit", before + 3 * FORGED as u64 - BURST)?;

        // A forger who knows both ports of an open connection passes, but not after it has ended.
        let before = packets(&limiter, "own_connection")?;
        peer.forge(&pair, PORT, port)?;
        wait(&limiter, "own_connection", before + FORGED as u64 - BURST)?;
        drop(peers_end);
        drop(own);
        let gone = || pair.server.enter(|| is_gone(port));
        crate::wait(gone)?;
        let before = packets(&limiter, "over_limit")?;
        peer.forge(&pair, PORT, port)?;
        wait(&limiter, "over_limit", before + FORGED as u64 - BURST)?;
        assert!(limiter.stop()?.success());
    }
    Ok(())
}

/// Returns whether this namespace has no connection of that port, but perhaps one in `TIME_WAIT`.
fn is_gone(port: u16) -> Result<bool> {
    let filter = format!("( sport = :{port} )");
    let mut ss = std::process::Command::new("ss");
    let output = ss
        .args([
            "-Htn",
            "state",
            "connected",
            "exclude",
            "time-wait",
            &filter,
        ])
        .output()
        .context("ss does not run")?;
    ensure!(output.status.success(), "{output:?}");
    Ok(output.stdout.is_empty())
}

#[test]
fn a_download_is_limited_where_the_configuration_says_so() -> Result<()> {
    for address in PEERS {
        let pair = pair()?;
        let peer = Peer::new(&pair, address)?;
        let limiter = start(&pair, &policy("own-connections: limit"))?;
        let got = peer.fetch(&pair, Duration::from_secs(2))?;
        assert!(got < BYTES / 2, "{address}: {got} bytes");
        assert!(packets(&limiter, "over_limit")? > 0);
        assert_eq!(packets(&limiter, "own_connection")?, 0);
        assert!(limiter.stop()?.success());
    }
    Ok(())
}

/// A peer that connects to the host is limited, also once the host's listener is gone.
#[test]
fn what_the_host_accepts_is_limited() -> Result<()> {
    for address in PEERS {
        let pair = pair()?;
        let own: IpAddr = server_for(address.parse()?)?;
        let listener = pair
            .server
            .enter(|| Ok(TcpListener::bind(SocketAddr::new(own, PORT))?))?;
        let limiter = start(&pair, &policy(""))?;
        let mut peer = pair.client.enter(|| Ok(TcpStream::connect((own, PORT))?))?;
        let (_accepted, _) = listener.accept()?;
        drop(listener);
        peer.set_write_timeout(Some(Duration::from_secs(2)))?;
        let sent = peer.write_all(&vec![7; BYTES]);
        assert!(sent.is_err(), "{address}: all was sent");
        assert!(packets(&limiter, "over_limit")? > 0);
        assert_eq!(packets(&limiter, "own_connection")?, 0);
        let _ = peer.shutdown(Shutdown::Both);
        assert!(limiter.stop()?.success());
    }
    Ok(())
}

/// `limiter explain` counts the open connections to the address alone, and names the limits that still
/// apply.
#[test]
fn what_is_exempt_is_explained() -> Result<()> {
    for address in PEERS {
        let pair = pair()?;
        let peer = Peer::new(&pair, address)?;
        let limiter = start(&pair, &policy(""))?;
        let explained = |of: &str| limiter.show(&["explain", of]);
        let counted = || anyhow::Ok(limiter.explain(address)?["own_connections"].clone());
        assert_eq!(counted()?, 0);
        let mut open = Vec::new();
        for number in 1..=3 {
            open.push(peer.connected(&pair)?);
            assert_eq!(counted()?, number, "{address}");
        }
        let said = "exempt: no limit and no sieve refuses TCP segments of the 3 connections that this \
                    host began to it\n";
        let shown = explained(address)?;
        ensure!(shown.contains(said), "{shown}");
        let other = explained("10.77.0.99")?;
        ensure!(!other.contains("exempt"), "{other}");

        // A connection opened by the peer is not the host's own.
        let listener = pair.server.enter(|| {
            let own = server_for(address.parse()?)?;
            Ok(TcpListener::bind((own, PORT))?)
        })?;
        let own = listener.local_addr()?;
        let _theirs = pair.client.enter(|| Ok(TcpStream::connect(own)?))?;
        assert_eq!(counted()?, 3);

        limiter.show(&["ban", address])?;
        let shown = explained(address)?;
        let said =
            "the ban drops TCP segments of the 3 connections that this host began to it, too\n";
        ensure!(shown.contains(said), "{shown}");
        limiter.show(&["unban", address])?;
        open.truncate(1);
        crate::wait(|| Ok(counted()? == 1))?;
        limiter.configure(&policy("own-connections: limit"))?;
        limiter.show(&["reload"])?;
        assert_eq!(counted()?, serde_json::Value::Null);
        let shown = explained(address)?;
        ensure!(!shown.contains("exempt"), "{shown}");
        assert!(limiter.stop()?.success());
    }
    Ok(())
}

/// A reload changes limits, but no connection: it stays the host's own.
#[test]
fn a_reload_forgets_no_connection() -> Result<()> {
    let pair = pair()?;
    let peer = Peer::new(&pair, PEERS[0])?;
    let limiter = start(&pair, &policy(""))?;
    let (own, _peers_end) = peer.connected(&pair)?;
    limiter.configure(&policy("bans: {capacity: 1024}"))?;
    limiter.show(&["reload"])?;
    peer.forge(&pair, PORT, own.local_addr()?.port())?;
    wait(&limiter, "own_connection", FORGED as u64 - BURST)?;
    assert_eq!(packets(&limiter, "over_limit")?, 0);
    assert!(limiter.stop()?.success());
    Ok(())
}
