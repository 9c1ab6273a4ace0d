//! Clients wait in line for a limit without room.

use std::{
    net::{IpAddr, SocketAddr, TcpStream},
    thread::{self, ScopedJoinHandle},
    time::Duration,
};

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;
use socket2::{Domain, Socket, Type};
use testbed::{CLIENT_INTERFACE, Frame, Limiter, Pair, RawSender};

use super::{
    CLIENT, LIMIT, PATIENCE, PORT, Server, assert_counted, assert_full, connect, fill, start,
};
use crate::{pair, server_for, wait};

/// A client repeats its SYN after one second, and several times more; the repetition takes a ticket.
const APART: Duration = Duration::from_millis(200);

/// The waiting clients, in order.
const WAITING: [&str; 3] = ["10.77.0.3", "fd77:1:1:2::1", "fd77:1:2::1"];

/// A client that comes later.
const NEWCOMER: &str = "fd77:1:1:3::1";

fn policy(queue: &str) -> String {
    super::policy("total", &format!(", queue: {queue}, metrics: {{}}"))
}

/// Connects from an address, with as many SYNs as it takes.
fn wait_in_line(pair: &Pair, from: &str) -> Result<TcpStream> {
    let from: IpAddr = from.parse()?;
    let server = SocketAddr::new(server_for(from)?, PORT);
    pair.client.enter(|| {
        let socket = Socket::new(Domain::for_address(server), Type::STREAM, None)?;
        socket.bind(&SocketAddr::new(from, 0).into())?;
        socket.connect_timeout(&server.into(), PATIENCE)?;
        Ok(TcpStream::from(socket))
    })
}

fn queue_of(limiter: &Limiter) -> Result<Value> {
    Ok(limiter.status()?["limits"]["Web"]["queue"].clone())
}

/// Fails unless this number of the queue soon has the expected value.
fn assert_queue(limiter: &Limiter, name: &str, expected: u64) -> Result<()> {
    let is_so = wait(|| Ok(queue_of(limiter)?[name] == expected));
    is_so.with_context(|| format!("{name} is not {expected}"))
}

#[test]
fn those_who_wait_enter_in_their_order() -> Result<()> {
    let pair = pair()?;
    let server = Server::new(&pair.server)?;
    let limiter = start(&pair, &policy("{size: 10}"))?;
    let mut open = fill(&pair, &server, CLIENT)?;
    thread::scope(|scope| {
        let mut clients: Vec<ScopedJoinHandle<'_, Result<TcpStream>>> = Vec::new();
        for (number, from) in (1..).zip(WAITING) {
            clients.push(scope.spawn(|| wait_in_line(&pair, from)));
            // Each client gets its ticket before the next one comes.
            assert_queue(&limiter, "waiting", number)?;
        }
        assert_full(&pair, NEWCOMER)?;
        let explained = limiter.explain(CLIENT)?;
        ensure!(explained["limits"][0]["waiting"] == 3, "{explained}");

        for (number, client) in (1..).zip(clients) {
            drop(open.remove(0));
            // While the first client's next SYN is on its way, a newcomer cannot take the free slot.
            for _ in 0..3 {
                let other = connect(&pair, NEWCOMER);
                ensure!(
                    other.is_err() || client.is_finished(),
                    "a newcomer is let in"
                );
            }
            wait(|| Ok(client.is_finished()))?;
            let client = client.join().ok().context("it panicked")??;
            open.push((client, server.accept()?));
            assert_queue(&limiter, "resumed", number)?;
        }
        Ok::<_, anyhow::Error>(())
    })?;
    let queue = queue_of(&limiter)?;
    ensure!(queue["queued"].as_u64() >= Some(3), "{queue}");
    ensure!(queue["rejected"] == 0, "{queue}");
    let waits = queue["waits"].as_array().context("no histogram")?;
    let waited: u64 = waits.iter().filter_map(Value::as_u64).sum();
    ensure!(waited == 3, "{queue}");
    assert_counted(&limiter, LIMIT as u64)?;

    let stats = limiter.show(&["stats", "--flat"])?;
    for line in [
        "plugin.rate_limiter.sni.Web.resumed 3",
        "plugin.rate_limiter.sni.Web.rejected 0",
    ] {
        ensure!(
            stats.lines().any(|other| other == line),
            "no {line}:\n{stats}"
        );
    }
    Ok(())
}

/// A client that waits longer than `max-age` is turned away. A client that gives up leaves the line.
#[test]
fn tickets_expire() -> Result<()> {
    let pair = pair()?;
    let server = Server::new(&pair.server)?;
    let limiter = start(&pair, &policy("{size: 10, max-age: 3s}"))?;
    let open = fill(&pair, &server, CLIENT)?;
    thread::scope(|scope| {
        let client = scope.spawn(|| wait_in_line(&pair, WAITING[0]));
        assert_queue(&limiter, "queued", 1)?;
        assert_queue(&limiter, "expired", 1)?;
        // The client goes on trying, as any client does.
        drop(open);
        let client = client.join().ok().context("it panicked")??;
        drop((client, server.accept()?));
        Ok::<_, anyhow::Error>(())
    })
}

#[test]
fn a_full_line_turns_others_away() -> Result<()> {
    let pair = pair()?;
    let server = Server::new(&pair.server)?;
    let limiter = start(&pair, &policy("{size: 2}"))?;
    let open = fill(&pair, &server, CLIENT)?;
    thread::scope(|scope| {
        let clients = WAITING.map(|from| {
            thread::sleep(APART);
            scope.spawn(|| wait_in_line(&pair, from))
        });
        assert_queue(&limiter, "waiting", 2)?;
        wait(|| Ok(queue_of(&limiter)?["rejected"] != 0))?;
        ensure!(queue_of(&limiter)?["waiting"] == 2);
        drop(open);
        for client in clients {
            client.join().ok().context("it panicked")??;
        }
        Ok::<_, anyhow::Error>(())
    })
}

/// Returns SYNs of this many unused sources.
fn forged(sources: u32) -> Result<Vec<Vec<u8>>> {
    let to: IpAddr = "10.77.0.1".parse()?;
    let syns = (0..sources).map(|source| {
        let from = IpAddr::from((0xc633_6400 + source).to_be_bytes());
        Frame::new(from, to).tcp_syn(1000, PORT, 1)
    });
    syns.collect()
}

/// A forger's SYNs take no ticket, even if each comes twice.
#[test]
fn forged_syns_take_no_ticket() -> Result<()> {
    let pair = pair()?;
    let server = Server::new(&pair.server)?;
    let limiter = start(&pair, &policy("{size: 10}"))?;
    let mut open = fill(&pair, &server, CLIENT)?;
    let frames = forged(5_000)?;
    let twice: Vec<_> = frames
        .iter()
        .flat_map(|syn| [syn.clone(), syn.clone()])
        .collect();
    RawSender::new(&pair.client, CLIENT_INTERFACE)?.send_frames(&twice)?;
    let queue = queue_of(&limiter)?;
    ensure!(queue["queued"] == 0 && queue["waiting"] == 0, "{queue}");
    thread::scope(|scope| {
        let client = scope.spawn(|| wait_in_line(&pair, WAITING[0]));
        assert_queue(&limiter, "waiting", 1)?;
        drop(open.pop());
        let client = client.join().ok().context("it panicked")??;
        open.push((client, server.accept()?));
        Ok::<_, anyhow::Error>(())
    })?;
    assert_queue(&limiter, "resumed", 1)
}

/// A forger who repeats a SYN after the same pause as a client takes tickets, and loses them once it stops.
#[test]
fn patient_forgers_hold_tickets_until_they_stop() -> Result<()> {
    let pair = pair()?;
    let server = Server::new(&pair.server)?;
    let limiter = start(&pair, &policy("{size: 5}"))?;
    let mut open = fill(&pair, &server, CLIENT)?;
    let sender = RawSender::new(&pair.client, CLIENT_INTERFACE)?;
    let frames = forged(20)?;
    for _ in 0..2 {
        sender.send_frames(&frames)?;
        thread::sleep(Duration::from_secs(1));
    }
    let queue = queue_of(&limiter)?;
    ensure!(queue["waiting"] == 5 && queue["rejected"] == 15, "{queue}");
    thread::scope(|scope| {
        let client = scope.spawn(|| wait_in_line(&pair, WAITING[0]));
        drop(open.pop());
        let client = client.join().ok().context("it panicked")??;
        open.push((client, server.accept()?));
        Ok::<_, anyhow::Error>(())
    })?;
    assert_queue(&limiter, "expired", 5)
}
