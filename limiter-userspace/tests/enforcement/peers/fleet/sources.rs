//! A source proven on one node is known on all.

pub(super) mod full;
mod key;
mod proofs;

use std::{
    net::{IpAddr, Ipv4Addr, SocketAddr},
    thread,
    time::{Duration, Instant, SystemTime},
};

use anyhow::{Context as _, Result, ensure};
use limiter_fleet::{
    Envelope, Key, Keys, Kind,
    replicated::Stamp,
    sources::{Proof, Source, SourceKey, SourceUpdate},
};
use limiter_protocol::KnownSourceQuery;
use serde_json::Value;
use testbed::{Connector, Frame, Limiter, Listener, Load};

use super::{Fleet, PACE, PATIENCE, ask, configuration, start, status, store, wait_until};

/// Half of the bucket is reserved for known sources.
const LIMITS: &str = "standing: {capacity: 4096}
limits:
  Passing: {id: total, cost: packets, burst: 1000000, count: 1000000, period: 1s}
  Packets: {id: total, cost: packets, match: {protocol: udp, destination-port: 9}, burst: 1000, count: 1,
    period: 1h, reserve: {familiar: 10%, fresh: 20%, retried: 50%, unknown: 50%}}";

/// The clients, in the namespace of the store.
const CLIENTS: &str = "10.81.0";

const PORT: u16 = 8080;

/// More packets than unknown sources may spend before the reserve begins.
const FLOOD: u32 = 700;

/// How soon other nodes must know a source, on a busy machine.
const SOON: Duration = Duration::from_secs(5);

pub(super) const HASH: &str = "limiter:{edge}:sources";

pub(super) const NEWS: &str = "limiter:{edge}:sources-news";

pub(super) fn fleet(nodes: &[&str], more: &str) -> Result<Fleet> {
    fleet_with(nodes, LIMITS, more)
}

fn fleet_with(nodes: &[&str], limits: &str, more: &str) -> Result<Fleet> {
    let store = store::Store::start(nodes.len())?;
    for last in 1..=9 {
        let address = format!("{CLIENTS}.{last}/32");
        store
            .namespace()
            .ip(&["address", "add", &address, "dev", "lo"])?;
    }
    store.namespace().ip(&["link", "set", "lo", "up"])?;
    for (number, node) in (1..).zip(&store.nodes) {
        let via = store::address(number);
        node.ip(&["route", "add", &format!("{CLIENTS}.0/24"), "via", &via])?;
    }
    let fleet = Fleet::among(store, nodes, limits, more)?;
    for node in &fleet.nodes {
        wait_until(node, |status| {
            status["sources"].is_null() || status["sources"]["error"].is_null()
        })?;
    }
    Ok(fleet)
}

/// Completes a handshake of a client with a node, by the node's number.
fn shake_hands(fleet: &Fleet, number: usize, client: &str) -> Result<()> {
    shake_hands_at(fleet, number, store::node_address(number).parse()?, client)
}

/// Completes it with this address of the node.
fn shake_hands_at(fleet: &Fleet, number: usize, node: IpAddr, client: &str) -> Result<()> {
    let _listener = Listener::new(&fleet.store.nodes[number - 1], PORT)?;
    let server = SocketAddr::new(node, PORT);
    let connector = Connector::new(fleet.store.namespace(), client.parse()?, server);
    let attempts = connector.connect(Load::saturating(SOON).at_most(1))?;
    ensure!(attempts.established == 1, "{attempts:?}");
    Ok(())
}

pub(super) fn client(last: u8) -> String {
    format!("{CLIENTS}.{last}")
}

/// Returns a node's knowledge of an address.
pub(super) fn known(node: &Limiter, address: &str) -> Result<Value> {
    let address = address.parse()?;
    ask(node, KnownSourceQuery { address })
}

/// Waits until a node knows an address for the reason `why`; returns how long that took.
pub(super) fn wait_for(node: &Limiter, address: &str, why: &str) -> Result<Duration> {
    let begun = Instant::now();
    loop {
        let known = known(node, address)?;
        if known["why"] == why {
            return Ok(begun.elapsed());
        }
        ensure!(
            begun.elapsed() < PATIENCE,
            "{address} is not known by {why}: {known:#}\n{:#}\n{}",
            status(node)?,
            node.log()?
        );
        thread::sleep(PACE);
    }
}

/// Sends packets to a node; returns how many pass.
fn send(fleet: &Fleet, number: usize, sources: impl Iterator<Item = IpAddr>) -> Result<u64> {
    let node = store::node_address(number).parse()?;
    send_frames(
        fleet,
        number,
        sources.map(|source| Frame::new(source, node).udp(4321, 9, b"a packet")),
    )
}

/// Sends frames to a node; returns how many pass.
fn send_frames(
    fleet: &Fleet,
    number: usize,
    frames: impl Iterator<Item = Result<Vec<u8>>>,
) -> Result<u64> {
    let before = passed(&fleet.nodes[number - 1])?;
    let frames = frames.collect::<Result<Vec<_>>>()?;
    fleet.store.sender(number)?.send_frames(&frames)?;
    Ok(passed(&fleet.nodes[number - 1])? - before)
}

fn passed(node: &Limiter) -> Result<u64> {
    let status = node.status()?;
    let passed = status["limits"]["Packets"]["passed_packets"].as_u64();
    passed.with_context(|| format!("no number in {status:#}"))
}

/// Sends a node packets of many unknown sources, until there is a shortage.
fn flood(fleet: &Fleet, number: usize) -> Result<()> {
    let forged = (0..FLOOD).map(|last| Ipv4Addr::from(0xc612_0000 + last).into());
    send(fleet, number, forged)?;
    let status = fleet.nodes[number - 1].status()?;
    ensure!(status["standing"]["shortage"].is_object(), "{status:#}");
    Ok(())
}

/// Sends ten packets of one source.
fn ten(fleet: &Fleet, number: usize, source: &str) -> Result<u64> {
    let source: IpAddr = source.parse()?;
    send(fleet, number, std::iter::repeat_n(source, 10))
}

/// Returns the envelope of messages authenticated with a key.
fn envelope(kind: Kind, key: &str) -> Result<Envelope> {
    let keys = Keys {
        current: Key::new(key.as_bytes()).map_err(anyhow::Error::msg)?,
        other: None,
    };
    let fleet = "edge".try_into().map_err(anyhow::Error::msg)?;
    Ok(Envelope::new(kind, &fleet, &keys))
}

/// Returns the stamp of an update that a node makes now.
fn stamp(node: &str) -> Result<Stamp> {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH)?;
    Ok(Stamp {
        ms: u64::try_from(now.as_millis())?,
        node: node.try_into().map_err(anyhow::Error::msg)?,
    })
}

/// Returns the field and the message of a node's entry about a source.
fn entry(
    envelope: &Envelope,
    node: &str,
    source: Source,
    until: SystemTime,
) -> Result<(String, Vec<u8>)> {
    let stamp = stamp(node)?;
    let node = stamp.node.clone();
    let until_s = until.duration_since(SystemTime::UNIX_EPOCH)?.as_secs();
    let update = SourceUpdate {
        key: SourceKey { source, node },
        stamp,
        value: Proof {
            since_s: 0,
            until_s,
            is_fresh: false,
            ipv6_prefix: 64,
        },
        ends_ms: until_s * 1_000,
    };
    Ok((update.key.to_string(), envelope.write(&vec![update])))
}

/// A client that completes a handshake with one node is served first on another in a flood. The same holds
/// for a client trusted by that node's operator, until the node forgets it. No node repeats entries of
/// others.
#[test]
fn a_source_that_one_node_has_proven_is_served_first_on_all() -> Result<()> {
    let fleet = fleet(&["a", "b", "c"], "")?;
    let [a, b, c] = &fleet.nodes[..] else {
        unreachable!()
    };
    let (shaken, trusted, stranger) = (client(1), client(2), client(3));
    let begun = Instant::now();
    shake_hands(&fleet, 1, &shaken)?;
    wait_for(b, &shaken, "fleet")?;
    println!(
        "a client of one node was known on another after {:?}",
        begun.elapsed()
    );
    let begun = Instant::now();
    a.show(&["trust", &trusted, "--for", "1h"])?;
    wait_for(b, &trusted, "fleet")?;
    let took = begun.elapsed();
    println!("a trusted one was known after {took:?}");
    ensure!(took < SOON, "{took:?}");
    wait_for(c, &trusted, "fleet")?;
    let reported = known(b, &shaken)?;
    ensure!(
        reported["standing"] == "proven" && reported["ends_in_ns"].is_u64(),
        "{reported:#}"
    );
    ensure!(b.explain(&shaken)?["standing"]["why"] == "fleet");

    flood(&fleet, 2)?;
    // Proven less than an hour before the shortage, it is fresh here as it would be there.
    ensure!(known(b, &shaken)?["standing"] == "fresh");
    ensure!(known(b, &trusted)?["standing"] == "proven");
    ensure!(ten(&fleet, 2, &stranger)? == 0);
    ensure!(ten(&fleet, 2, &shaken)? == 10);
    ensure!(ten(&fleet, 2, &trusted)? == 10);

    // Each node sends only its own proofs: these clients, and the store, which completed a handshake.
    for (node, expected) in [(a, 3), (b, 1), (c, 1)] {
        wait_until(node, |status| {
            status["sources"]["proven"] == expected && status["sources"]["unsent"] == 0
        })?;
    }
    wait_until(c, |status| status["sources"]["received"] == 4)?;
    a.show(&["untrust", &shaken])?;
    let begun = Instant::now();
    wait_for(b, &shaken, "nothing")?;
    println!(
        "it was forgotten on all {:?} after that node forgot it",
        begun.elapsed()
    );
    wait_for(c, &shaken, "nothing")?;
    ensure!(ten(&fleet, 2, &shaken)? == 0);
    ensure!(known(b, &trusted)?["why"] == "fleet");

    // If one node takes a source back, another node's proof of it still counts, also there.
    b.show(&["trust", &trusted, "--for", "1h"])?;
    wait_until(c, |status| status["sources"]["received"] == 4)?;
    a.show(&["untrust", &trusted])?;
    wait_for(a, &trusted, "fleet")?;
    wait_until(c, |status| status["sources"]["received"] == 3)?;
    ensure!(known(c, &trusted)?["why"] == "fleet");
    b.show(&["untrust", &trusted])?;
    wait_for(c, &trusted, "nothing")?;
    fleet.stop()
}

/// A starting node enforces a new ban before it has read a long hash of known sources.
#[test]
fn bans_do_not_wait_for_known_sources() -> Result<()> {
    let mut fleet = fleet(&["a", "b"], "")?;
    fleet.nodes[0].show(&["trust", &client(1), "--for", "1h"])?;
    wait_for(&fleet.nodes[1], &client(1), "fleet")?;
    fleet.nodes[1].terminate()?;
    let fill = "local all = redis.call('HGETALL', KEYS[1]) for number = 1, 100000 do \
                redis.call('HSET', KEYS[1], 'a ' .. number, all[2]) end return 'OK'";
    let filled = fleet.store.command(&["eval", fill, "1", HASH])?;
    ensure!(filled.trim() == "OK", "{filled}");
    fleet.nodes[1].restart()?;
    let [a, b] = &fleet.nodes[..] else {
        unreachable!()
    };
    wait_until(b, |status| status["connected"] == true)?;
    let begun = Instant::now();
    a.show(&["ban", "192.0.2.1", "--for", "1h"])?;
    super::wait_for(b, "192.0.2.1", 1)?;
    println!("in force after {:?}", begun.elapsed());
    ensure!(status(b)?["sources"].is_null(), "{:#}", status(b)?);
    ensure!(begun.elapsed() < SOON, "{:?}", begun.elapsed());
    wait_until(b, |status| status["sources"]["received"].is_u64())?;
    println!("all sources were read after {:?}", begun.elapsed());
    fleet.stop()
}

/// Waits until the store has entries of both nodes.
pub(super) fn wait_for_entries(store: &store::Store) -> Result<()> {
    crate::wait(|| {
        let fields = store.command(&["hkeys", HASH])?;
        let has_entry = |node| fields.lines().any(|field| field.starts_with(node));
        Ok(["a ", "b "].into_iter().all(has_entry))
    })
}

/// A node that does not share known sources neither sends nor takes entries.
#[test]
fn a_node_need_not_share_known_sources() -> Result<()> {
    let mut fleet = fleet(&["a", "b"], "")?;
    let b = fleet.nodes.remove(1);
    ensure!(b.stop()?.success());
    let text = configuration(
        &fleet.store,
        2,
        ("b", &["a", "b"]),
        LIMITS,
        ", known-sources: 'off'",
    );
    fleet.nodes.push(start(&fleet.store, 2, &text)?);
    let [a, b] = &fleet.nodes[..] else {
        unreachable!()
    };
    let (of_a, of_b) = (client(1), client(2));
    a.show(&["trust", &of_a, "--for", "1h"])?;
    b.show(&["trust", &of_b, "--for", "1h"])?;
    crate::wait(|| Ok(fleet.store.command(&["hkeys", HASH])?.contains(&of_a)))?;
    // Later messages have come.
    for (node, other, prefix) in [(a, b, "192.0.2.1"), (b, a, "192.0.2.2")] {
        node.show(&["ban", prefix, "--for", "1h"])?;
        super::wait_for(other, prefix, 1)?;
    }
    let fields = fleet.store.command(&["hkeys", HASH])?;
    ensure!(!fields.contains(&of_b), "{fields}");
    ensure!(known(a, &of_b)?["why"] == "nothing");
    ensure!(known(b, &of_a)?["why"] == "nothing");
    ensure!(status(b)?["sources"].is_null());
    fleet.stop()
}
