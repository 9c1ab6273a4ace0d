//! Five hosts under attack, each with its own clients, and the faults of a fleet: hosts that are cut off,
//! daemons that stall and die, a store that is slow, full, stopped or lost.
//!
//! Each node is a namespace with two links: to its clients, where the limiter runs, and to the store. The
//! receivers count the packets that pass.

mod faults;
mod full;
mod good;
pub(super) mod many;
pub(super) mod quiet;
mod traffic;

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use testbed::{Limiter, Pair, PinDirectory, SERVER_INTERFACE, UdpSink};

use super::{
    Fleet, binary, configuration,
    proxy::Proxy,
    shared_limits::wait_for_leases,
    store::{Disk, Store},
    wait_until,
};
use crate::peers::succeed;

/// The shared budget, in packets a second.
const RATE: i64 = 1_200;

/// The burst: some seconds' worth, so that the refill of these seconds does not hide surplus tokens.
const BURST: i64 = 4_000;

/// The destination port of all counted packets.
const PORT: u16 = 9;

const LIMITS: &str = "limits:
  Passing: {id: total, cost: packets, burst: 1000000, count: 1000000, period: 1s}
  All: {id: total, cost: packets, match: {protocol: udp, destination-port: 9}, scope: fleet, burst: 4000,
        count: 1200, period: 1s}";

/// The port of the store, and the port of its proxy.
const STORE_PORT: u16 = 6_380;
const PROXY_PORT: u16 = 6_381;

const NAMES: [&str; 5] = ["a", "b", "c", "d", "e"];

/// How soon the fleet must share again after a fault.
const RECOVERY: Duration = Duration::from_secs(5);

/// The same on a busy machine.
const SLOW_RECOVERY: Duration = Duration::from_secs(20);

struct Five {
    fleet: Fleet,
    hosts: Vec<Host>,
    proxy: Proxy,
}

/// A node's clients, and the server that it protects.
struct Host {
    pair: Pair,
    sink: UdpSink,
    /// The programs stay when their daemon is killed.
    pins: PinDirectory,
}

impl Five {
    /// Starts a store and the nodes, and waits until each has leases.
    fn start() -> Result<Self> {
        Self::by(STORE_PORT)
    }

    /// Starts them with the proxy between nodes and store.
    fn by_proxy() -> Result<Self> {
        Self::by(PROXY_PORT)
    }

    fn by(port: u16) -> Result<Self> {
        let pairs = (1..=NAMES.len()).map(traffic::pair);
        let pairs = pairs.collect::<Result<Vec<_>>>()?;
        let servers = pairs.iter().map(|pair| pair.server.clone()).collect();
        let store = Store::among(servers, Disk::None)?;
        let proxy = Proxy::start(store.namespace(), PROXY_PORT, STORE_PORT)?;
        let (from, to) = (format!(":{STORE_PORT}/"), format!(":{port}/"));
        let (mut nodes, mut hosts) = (Vec::new(), Vec::new());
        for ((number, name), pair) in (1..).zip(NAMES).zip(pairs) {
            let text = configuration(&store, number, (name, &NAMES), LIMITS, "");
            let text = text.replace(&from, &to);
            let pins = PinDirectory::new()?;
            nodes.push(start(&pair, &text, &[&pins.argument()])?);
            let sink = UdpSink::new(&pair.server, PORT)?;
            hosts.push(Host { pair, sink, pins });
        }
        let fleet = Fleet { store, nodes };
        for node in &fleet.nodes {
            wait_until(node, |status| status["connected"] == true)?;
        }
        wait_for_leases(&fleet)?;
        Ok(Self {
            fleet,
            hosts,
            proxy,
        })
    }

    /// Returns a node, counted from 1.
    fn node(&mut self, number: usize) -> &mut Limiter {
        &mut self.fleet.nodes[number - 1]
    }

    /// Cuts nodes off from the store; with an empty list, reconnects all.
    fn cut_off(&self, numbers: &[usize]) -> Result<()> {
        let nft = |rules: &str| {
            let mut command = self.fleet.store.namespace().command("nft");
            succeed(command.arg(rules)).context("cannot run nft")
        };
        nft("table inet cut; delete table inet cut")?;
        for number in numbers {
            let link = format!("n{number}");
            nft(&format!(
                "table inet cut {{
chain in {{ type filter hook input priority 0
iifname {link} drop
}}
chain out {{ type filter hook output priority 0
oifname {link} drop
}}
}}"
            ))?;
        }
        Ok(())
    }
}

fn start(pair: &Pair, configuration: &str, more: &[&str]) -> Result<Limiter> {
    let arguments = [
        "-i",
        SERVER_INTERFACE,
        "--mode",
        "generic",
        "--metrics",
        "off",
    ];
    let arguments = [&arguments[..], more].concat();
    Limiter::start(binary(), &pair.server, configuration, &arguments)
}

/// Checks how long the fleet took to share again.
pub(super) fn check_recovery(what: &str, time: Duration) -> Result<()> {
    let word = if time <= RECOVERY {
        "within"
    } else {
        "NOT WITHIN"
    };
    println!("{what}: shared again after {time:?}, {word} {RECOVERY:?}");
    ensure!(time <= SLOW_RECOVERY, "{what}: {time:?}");
    Ok(())
}
