//! A source proven on one node is known on all.

mod full;
mod key;
mod many;
mod proofs;

use std::{
    net::{IpAddr, Ipv4Addr, SocketAddr},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, ensure};
use limiter_userspace::protocol::KnownSourceQuery;
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

/// How long to check that nothing changes.
const QUIET: Duration = Duration::from_secs(3);

const HASH: &str = "limiter:{edge}:sources";

const NEWS: &str = "limiter:{edge}:sources-news";

fn fleet(nodes: &[&str], more: &str) -> Result<Fleet> {
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

fn client(last: u8) -> String {
    format!("{CLIENTS}.{last}")
}

/// Returns a node's knowledge of an address.
fn known(node: &Limiter, address: &str) -> Result<Value> {
    let address = address.parse()?;
    ask(node, KnownSourceQuery { address })
}

/// Waits until a node knows an address for the reason `why`; returns how long that took.
fn wait_for(node: &Limiter, address: &str, why: &str) -> Result<Duration> {
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
    thread::sleep(QUIET);
    for (node, expected) in [(a, 3), (b, 1), (c, 1)] {
        let status = status(node)?;
        ensure!(status["sources"]["proven"] == expected, "{status:#}");
        ensure!(status["sources"]["unsent"] == 0, "{status:#}");
    }
    ensure!(status(c)?["sources"]["received"] == 4, "{:#}", status(c)?);
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
    fleet.stop()
}

/// If one node takes a source back, another node's proof of it still counts.
#[test]
fn a_node_speaks_for_itself_alone() -> Result<()> {
    let fleet = fleet(&["a", "b", "c"], "")?;
    let [a, b, c] = &fleet.nodes[..] else {
        unreachable!()
    };
    let (both, of_b) = (client(1), client(2));
    for node in [a, b] {
        node.show(&["trust", &both, "--for", "1h"])?;
    }
    b.show(&["trust", &of_b, "--for", "1h"])?;
    wait_until(c, |status| status["sources"]["received"] == 5)?;
    a.show(&["untrust", &both])?;
    wait_until(c, |status| status["sources"]["received"] == 4)?;
    ensure!(known(c, &both)?["why"] == "fleet");
    ensure!(known(b, &both)?["why"] == "trusted");
    // The other node's entry counts there now.
    wait_for(a, &both, "fleet")?;
    b.show(&["untrust", &both])?;
    wait_for(c, &both, "nothing")?;
    ensure!(known(c, &of_b)?["why"] == "fleet");
    // An entry ends by itself.
    b.show(&["trust", &both, "--for", "10s"])?;
    wait_for(c, &both, "fleet")?;
    let begun = Instant::now();
    wait_for(c, &both, "nothing")?;
    ensure!(
        begun.elapsed() > Duration::from_secs(5),
        "{:?}",
        begun.elapsed()
    );
    fleet.stop()
}

/// A returning node catches up on new entries and on entries taken back, even after the store was lost.
#[test]
fn a_node_that_was_away_knows_what_it_missed() -> Result<()> {
    let mut fleet = fleet(&["a", "b"], "")?;
    let (gone, stays, new) = (client(1), client(2), client(3));
    for source in [&gone, &stays] {
        fleet.nodes[0].show(&["trust", source, "--for", "1h"])?;
        wait_for(&fleet.nodes[1], source, "fleet")?;
    }
    fleet.nodes[1].terminate()?;
    fleet.nodes[0].show(&["untrust", &gone])?;
    fleet.nodes[0].show(&["trust", &new, "--for", "1h"])?;
    fleet.nodes[1].restart()?;
    wait_for(&fleet.nodes[1], &new, "fleet")?;
    wait_for(&fleet.nodes[1], &gone, "nothing")?;
    ensure!(known(&fleet.nodes[1], &stays)?["why"] == "fleet");

    // Cut off, the node goes on with its knowledge.
    fleet.store.set_link(2, "down")?;
    let [a, b] = &fleet.nodes[..] else {
        unreachable!()
    };
    wait_until(b, |status| status["sources"]["error"].is_string())?;
    a.show(&["untrust", &new])?;
    a.show(&["trust", &gone, "--for", "1h"])?;
    ensure!(known(b, &new)?["why"] == "fleet");
    fleet.store.set_link(2, "up")?;
    wait_for(b, &gone, "fleet")?;
    wait_for(b, &new, "nothing")?;

    // The store restarts empty, and a node that starts then learns everything.
    fleet.store.kill()?;
    wait_until(a, |status| status["sources"]["error"].is_string())?;
    fleet.nodes[1].terminate()?;
    fleet.store.run()?;
    fleet.nodes[1].restart()?;
    wait_for(&fleet.nodes[1], &gone, "fleet")?;
    wait_for_entries(&fleet)?;
    // The store loses its data while it runs.
    fleet.store.command(&["flushall"])?;
    wait_for_entries(&fleet)?;
    ensure!(known(&fleet.nodes[1], &gone)?["why"] == "fleet");
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
fn wait_for_entries(fleet: &Fleet) -> Result<()> {
    crate::wait(|| {
        let fields = fleet.store.command(&["hkeys", HASH])?;
        let has_entry = |node| fields.lines().any(|field| field.starts_with(node));
        Ok(["a ", "b "].into_iter().all(has_entry))
    })
}

/// An attacker with write access to the store but without the key can prove no source, and lengthen no entry
/// by replaying it.
#[test]
fn forged_and_repeated_messages_do_nothing() -> Result<()> {
    let fleet = fleet(&["a", "b"], "")?;
    let [a, b] = &fleet.nodes[..] else {
        unreachable!()
    };
    let (taken_back, later) = (client(1), client(2));
    a.show(&["trust", &taken_back, "--for", "1h"])?;
    wait_for(b, &taken_back, "fleet")?;
    wait_for_entries(&fleet)?;
    let store = &fleet.store;
    let copy =
        "local all = redis.call('HGETALL', KEYS[1]) redis.call('HSET', KEYS[2], unpack(all))";
    store.command(&["eval", copy, "2", HASH, "kept"])?;
    a.show(&["untrust", &taken_back])?;
    wait_for(b, &taken_back, "nothing")?;
    for forged in [
        "",
        "an entry",
        "\u{1}0123456789abcdef0123456789abcdefxxxxxxxxxxxxxxxxx",
    ] {
        store.command(&["xadd", NEWS, "*", "m", forged])?;
        store.command(&["hset", HASH, "c 1", forged])?;
    }
    let repeat = "for _, one in ipairs(redis.call('XRANGE', KEYS[1], '-', '+')) do \
                  redis.call('XADD', KEYS[1], '*', unpack(one[2])) end";
    store.command(&["eval", repeat, "1", NEWS])?;
    store.command(&["eval", copy, "2", "kept", HASH])?;
    wait_until(b, |status| status["refused"]["source"].as_u64() >= Some(2))?;
    // All later entries arrive. A reconnected node reads the hash too.
    store.set_link(2, "down")?;
    wait_until(b, |status| status["sources"]["error"].is_string())?;
    store.set_link(2, "up")?;
    a.show(&["trust", &later, "--for", "1h"])?;
    wait_for(b, &later, "fleet")?;
    ensure!(known(b, &taken_back)?["why"] == "nothing");
    fleet.stop()
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
    wait_until(b, |status| status["connected"] == true)?;
    thread::sleep(QUIET);
    ensure!(known(a, &of_b)?["why"] == "nothing");
    ensure!(known(b, &of_a)?["why"] == "nothing");
    ensure!(status(b)?["sources"].is_null());
    fleet.stop()
}
