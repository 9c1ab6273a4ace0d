//! Limits on forwarded connections: the kernel's connection tracking decides which ones are open.

mod bound;
mod forged;
mod reported;
mod translated;
mod turned_away;

use std::{
    io::Read as _,
    net::{Shutdown, SocketAddr, TcpStream},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, bail, ensure};
use socket2::Socket;
use testbed::{Limiter, PinDirectory};

use super::{
    AT_ONCE, CLIENT, CLIENT_V6, LIMIT, PATIENCE, PORT, Server, assert_counted, connect_to, counted,
    policy, start, start_with,
};
use crate::{
    PACE,
    forwarding::{Forwarding, nft},
};

/// The server behind the host, by the clients' family.
const SERVER: &str = "10.99.0.2";
const SERVER_V6: &str = "fd99::2";

/// Makes the host track forwarded connections.
const TRACK: &str = "\
table inet tracked {
  chain forward {
    type filter hook forward priority filter
    ct state invalid counter
  }
}
";

fn tracked(id: &str) -> String {
    format!("{}connections: tracked\n", policy(id, ""))
}

/// A host that tracks and forwards, with a server behind it.
struct Scene {
    forwarding: Forwarding,
    server: Server,
}

impl Scene {
    fn new() -> Result<Self> {
        let forwarding = Forwarding::new()?;
        nft(&forwarding.pair.server, TRACK)?;
        let server = Server::new(&forwarding.behind)?;
        Ok(Self { forwarding, server })
    }

    fn start(&self, configuration: &str) -> Result<Limiter> {
        start(&self.forwarding.pair, configuration)
    }

    fn connect(&self, from: &str) -> Result<TcpStream> {
        let to = if from.contains(':') {
            SERVER_V6
        } else {
            SERVER
        };
        let to = SocketAddr::new(to.parse()?, PORT);
        connect_to(&self.forwarding.pair, from, to)
    }

    fn open(&self, from: &str) -> Result<(TcpStream, TcpStream)> {
        Ok((self.connect(from)?, self.server.accept()?))
    }

    /// Opens as many connections as the limit admits; returns both ends of each.
    fn fill(&self, from: &str) -> Result<Vec<(TcpStream, TcpStream)>> {
        let opened = (0..LIMIT).map(|number| {
            let opened = self.open(from);
            opened.with_context(|| format!("connection {number}"))
        });
        opened.collect()
    }

    fn assert_full(&self, from: &str) -> Result<()> {
        ensure!(
            self.connect(from).is_err(),
            "one more from {from} is let in"
        );
        Ok(())
    }

    /// Fails unless one more connection is soon admitted.
    fn assert_room(&self, from: &str) -> Result<(TcpStream, TcpStream)> {
        let end = Instant::now() + PATIENCE;
        loop {
            match self.open(from) {
                Ok(open) => return Ok(open),
                Err(error) if Instant::now() > end => bail!("no room for {from}: {error}"),
                Err(_) => {}
            }
        }
    }
}

/// Fails unless this many are soon counted, all of them by tracking and none by a socket.
fn assert_tracked(limiter: &Limiter, expected: u64) -> Result<()> {
    let end = Instant::now() + PATIENCE;
    loop {
        let status = limiter.status()?;
        let connections = &status["connections"];
        let [counted, tracked] = ["counted", "tracked"].map(|which| connections[which].as_u64());
        if counted == Some(expected) && tracked == counted {
            return Ok(());
        }
        ensure!(
            Instant::now() < end,
            "{counted:?} are counted, {tracked:?} of them forwarded, not {expected}"
        );
        thread::sleep(PACE);
    }
}

#[test]
fn what_is_forwarded_has_only_so_many_open() -> Result<()> {
    let scene = Scene::new()?;
    let limiter = scene.start(&tracked("ipAddress"))?;
    for from in [CLIENT, CLIENT_V6] {
        let mut open = scene.fill(from)?;
        assert_tracked(&limiter, LIMIT as u64)?;
        for _ in 0..3 {
            scene.assert_full(from)?;
        }
        let explained = limiter.explain(from)?;
        let limit = &explained["limits"][0];
        ensure!(limit["connections"] == LIMIT, "{explained}");
        ensure!(limit["remaining"] == 0, "{explained}");
        drop(open.pop());
        open.push(scene.assert_room(from)?);
        assert_tracked(&limiter, LIMIT as u64)?;
        scene.assert_full(from)?;
        drop(open);
        assert_tracked(&limiter, 0)?;
    }
    // Other addresses are not affected.
    let _open = scene.fill(CLIENT)?;
    assert_tracked(&limiter, LIMIT as u64)?;
    scene.assert_full(CLIENT)?;
    let _other = scene.open("10.77.0.3")?;
    let status = limiter.status()?;
    ensure!(status["connections"]["uncounted"] == 0, "{status}");
    ensure!(status["connections"]["error"].is_null(), "{status}");
    ensure!(status["daemon"]["tracking"]["error"].is_null(), "{status}");
    ensure!(status["daemon"]["tracking"]["late"].is_null(), "{status}");
    let shown = limiter.show(&["status"])?;
    ensure!(shown.contains("of these, forwarded: "), "{shown}");
    Ok(())
}

/// The kernel reports each connection at once; polls come only once a second.
#[test]
fn they_count_as_soon_as_they_are_established() -> Result<()> {
    let scene = Scene::new()?;
    let limiter = scene.start(&tracked("ipAddress"))?;
    assert_tracked(&limiter, 0)?;
    let mut each = Vec::new();
    for _ in 0..10 {
        // Begin at any moment between two polls.
        thread::sleep(Duration::from_millis(fastrand::u64(..1500)));
        let begun = Instant::now();
        let mut open = Vec::new();
        // One connection after the other, as fast as a client can.
        while let (true, Ok(client)) = (begun.elapsed() < AT_ONCE, scene.connect(CLIENT)) {
            open.push((client, scene.server.accept()?));
        }
        each.push(open.len());
        drop(open);
        assert_tracked(&limiter, 0)?;
    }
    println!("{each:?} were let in one after the other, where {LIMIT} may be open");
    each.sort_unstable();
    ensure!(each[0] >= LIMIT, "{each:?}");
    // A busy machine may report late now and then. Polls alone would fall into the few milliseconds of three of ten
    // rounds about once in ten thousand runs.
    ensure!(each[2] <= LIMIT + 2, "{each:?}");
    Ok(())
}

#[test]
fn each_end_gives_the_slot_back() -> Result<()> {
    let scene = Scene::new()?;
    let limiter = scene.start(&tracked("ipAddress"))?;
    let mut open = scene.fill(CLIENT)?;
    assert_tracked(&limiter, LIMIT as u64)?;

    // The client has sent all of its data: half-closed connections hold their slots.
    let (mut client, mut serving) = open.pop().context("it is open")?;
    client.shutdown(Shutdown::Write)?;
    ensure!(serving.read(&mut [0])? == 0, "the server sees the end");
    thread::sleep(Duration::from_millis(2500));
    assert_tracked(&limiter, LIMIT as u64)?;
    scene.assert_full(CLIENT)?;
    drop(serving);
    ensure!(client.read(&mut [0])? == 0, "the client sees the end");
    drop(client);
    open.push(scene.assert_room(CLIENT)?);
    assert_tracked(&limiter, LIMIT as u64)?;

    // The server closes first; either end may reset.
    let (client, serving) = open.pop().context("it is open")?;
    drop(serving);
    drop(client);
    open.push(scene.assert_room(CLIENT)?);
    assert_tracked(&limiter, LIMIT as u64)?;
    for is_client in [true, false] {
        let (client, serving) = open.pop().context("it is open")?;
        let (resets, other) = if is_client {
            (client, serving)
        } else {
            (serving, client)
        };
        Socket::from(resets).set_linger(Some(Duration::ZERO))?;
        open.push(scene.assert_room(CLIENT)?);
        drop(other);
        assert_tracked(&limiter, LIMIT as u64)?;
        scene.assert_full(CLIENT)?;
    }
    drop(open);
    assert_tracked(&limiter, 0)
}

/// The kernel sends no events about earlier connections, so polls find them and their ends.
#[test]
fn connections_from_before_count() -> Result<()> {
    let scene = Scene::new()?;
    let mut before = scene.fill(CLIENT)?;
    let limiter = scene.start(&tracked("ipAddress"))?;
    assert_tracked(&limiter, LIMIT as u64)?;
    scene.assert_full(CLIENT)?;
    drop(before.pop());
    before.push(scene.assert_room(CLIENT)?);
    assert_tracked(&limiter, LIMIT as u64)?;
    drop(before);
    assert_tracked(&limiter, 0)
}

/// A reload recounts by the new limits, or by none. A restarted daemon counts the connections that were opened and
/// closed without it.
#[test]
fn reloads_and_restarts_count_anew() -> Result<()> {
    let scene = Scene::new()?;
    let pins = PinDirectory::new()?;
    let pinned = pins.argument();
    let pair = &scene.forwarding.pair;
    let arguments = ["--mode", "generic", &pinned];
    let mut limiter = start_with(pair, &tracked("ipAddress"), &arguments)?;
    let mut open = scene.fill(CLIENT)?;
    assert_tracked(&limiter, LIMIT as u64)?;

    limiter.configure(&tracked("total"))?;
    limiter.show(&["reload"])?;
    let end = Instant::now() + PATIENCE;
    while scene.connect(CLIENT_V6).is_ok() {
        let _ = scene.server.accept();
        ensure!(
            Instant::now() < end,
            "what was open is not counted by the new limit"
        );
    }
    limiter.configure(&policy("ipAddress", ""))?;
    limiter.show(&["reload"])?;
    assert_counted(&limiter, 0)?;
    ensure!(limiter.status()?["connections"]["tracked"].is_null());
    limiter.configure(&tracked("ipAddress"))?;
    limiter.show(&["reload"])?;
    assert_tracked(&limiter, LIMIT as u64)?;

    limiter.kill()?;
    // The pinned programs go on with the old counts.
    scene.assert_full(CLIENT)?;
    drop(open.pop());
    limiter.restart()?;
    assert_tracked(&limiter, LIMIT as u64 - 1)?;
    open.push(scene.assert_room(CLIENT)?);
    assert_tracked(&limiter, LIMIT as u64)?;
    scene.assert_full(CLIENT)?;
    drop(open);
    assert_tracked(&limiter, 0)?;
    ensure!(counted(&limiter)? == 0);
    Ok(())
}
