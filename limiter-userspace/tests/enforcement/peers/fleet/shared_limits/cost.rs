//! The cost of many active keys, with a real kernel and a real store.

use std::{
    iter,
    net::{IpAddr, Ipv4Addr},
    num::NonZeroU32,
    thread,
    time::Duration,
};

use anyhow::{Context as _, Result};
use testbed::{Frame, Load};

use super::{super::cost, Fleet, status, store, wait_for_leases};

const NODES: [&str; 10] = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j"];

const KEYS: usize = 10_000;

/// Packets a second of each key, at one node: more than that node's minimum share.
const EACH: usize = 4;

const LIMITS: &str = "limits:
  Passing: {id: total, cost: packets, burst: 1000000, count: 1000000, period: 1s}
  Each: {id: ipAddress, cost: packets, match: {protocol: udp, destination-port: 9}, scope: fleet, burst: 200,
         count: 10, period: 1s}";

/// How many seconds a key stays at a node.
const STAY: usize = 10;

/// Returns the node that receives a key's packets in a given second.
const fn busy(key: usize, second: usize) -> usize {
    (key + (second + key / NODES.len() % STAY) / STAY) % NODES.len()
}

fn frame(key: usize, node: usize) -> Result<Vec<u8>> {
    let source = Ipv4Addr::from(0x0a01_0000 + u32::try_from(key)?);
    let destination: IpAddr = store::node_address(node + 1).parse()?;
    Frame::new(source.into(), destination).udp(1_000, 9, b"")
}

/// Sends the packets of some seconds.
fn send(fleet: &Fleet, seconds: impl Iterator<Item = usize>) -> Result<()> {
    for second in seconds {
        let senders = (0..NODES.len()).map(|node| {
            let keys = (0..KEYS).filter(|key| busy(*key, second) == node);
            let frames = keys.map(|key| frame(key, node));
            let frames = frames.collect::<Result<Vec<_>>>()?;
            let rate = NonZeroU32::new(u32::try_from(frames.len() * EACH)?);
            let load = Load::steady(rate.context("keys")?, Duration::from_secs(1));
            let sender = fleet.store.sender(node + 1)?;
            Ok(thread::spawn(move || sender.send(load, &frames)))
        });
        for sender in senders.collect::<Result<Vec<_>>>()? {
            sender.join().ok().context("a sender has panicked")??;
        }
    }
    Ok(())
}

/// Sends the packets of some seconds, and prints the cost of a node and of the store.
fn print(fleet: &Fleet, what: &str, seconds: impl Iterator<Item = usize>) -> Result<()> {
    let node = &fleet.nodes[0];
    let processes = [("node", node.id()), ("store", fleet.store.id()?)];
    println!("{what}:");
    cost::print(&processes, || send(fleet, seconds))?;
    let traffic = &node.status()?["limits"]["Each"];
    let active = &status(node)?["shares"]["Each"]["active"];
    println!("  {active} active keys; {traffic}");
    Ok(())
}

#[test]
#[ignore = "takes minutes: it is for measuring"]
fn many_active_keys() -> Result<()> {
    let fleet = Fleet::with(&NODES, LIMITS)?;
    wait_for_leases(&fleet)?;
    send(&fleet, iter::repeat_n(0, 10))?;
    print(&fleet, "no key moves", iter::repeat_n(0, 20))?;
    send(&fleet, 0..STAY)?;
    print(&fleet, "a thousand move each second", STAY..3 * STAY)?;
    fleet.stop()
}
