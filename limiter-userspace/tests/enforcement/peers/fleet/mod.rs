//! A fleet of daemons in separate namespaces with a real store between them: over TLS, as an ACL user with
//! exactly the rights in docs/fleet.md.

mod attacks;
mod away;
mod bans;
mod cluster;
mod cost;
mod five;
mod lag;
mod proxy;
mod push;
mod rights;
mod servers;
mod shared_limits;
mod sources;
mod store;

use std::collections::BTreeMap;
use std::{fs, net::IpAddr, os::unix::fs::PermissionsExt as _, path::Path, thread, time::Instant};

use anyhow::{Result, ensure};
use ipnet::IpNet;
use limiter_protocol::{FleetQuery, Request, bans::BansQuery, control::client};
use serde_json::Value;
use testbed::Limiter;

use self::store::Store;
use super::{PASSES, binary};
use crate::{PACE, PATIENCE};

/// The arguments of each node.
const ARGUMENTS: [&str; 6] = ["-i", store::UPLINK, "--mode", "generic", "--metrics", "off"];

/// The fleet's next key, after [`store::KEY`].
const NEW_KEY: &str = "1f2e3d4c5b6a79880918273645546372819fae0dbcca9b8d7e6f50413223140f";

/// The log line of a daemon that has read its keys.
const KEYS_READ: &str = "the fleet's keys are those in the file";

struct Fleet {
    store: Store,
    nodes: Vec<Limiter>,
}

impl Fleet {
    /// Starts a store and nodes, and waits until they are connected and know each other.
    fn start(nodes: &[&str]) -> Result<Self> {
        Self::with(nodes, PASSES)
    }

    /// Starts nodes with these limits, which know each other's names.
    fn with(nodes: &[&str], limits: &str) -> Result<Self> {
        Self::among(Store::start(nodes.len())?, nodes, limits, "")
    }

    /// Starts nodes with more fields of `fleet`.
    fn start_with(nodes: &[&str], more: &str) -> Result<Self> {
        Self::among(Store::start(nodes.len())?, nodes, PASSES, more)
    }

    /// Starts nodes linked to a store, with more fields of `fleet`.
    fn among(store: Store, nodes: &[&str], limits: &str, more: &str) -> Result<Self> {
        let nodes = (1..).zip(nodes).map(|(number, node)| {
            let text = configuration(&store, number, (node, nodes), limits, more);
            start(&store, number, &text)
        });
        let fleet = Self {
            nodes: nodes.collect::<Result<_>>()?,
            store,
        };
        for node in &fleet.nodes {
            wait_until(node, |status| status["connected"] == true)?;
        }
        Ok(fleet)
    }

    fn stop(self) -> Result<()> {
        for node in self.nodes {
            ensure!(node.stop()?.success());
        }
        Ok(())
    }
}

fn start(store: &Store, number: usize, configuration: &str) -> Result<Limiter> {
    Limiter::start(
        binary(),
        &store.nodes[number - 1],
        configuration,
        &ARGUMENTS,
    )
}

/// Returns the configuration of a node with these limits and more fields of `fleet`; `all` are the names of
/// all nodes.
fn configuration(
    store: &Store,
    number: usize,
    (node, all): (&str, &[&str]),
    limits: &str,
    more: &str,
) -> String {
    let place = format!("{}:6380", store::address(number));
    configuration_at(store, &place, (node, all), limits, more)
}

/// Returns the configuration of a node with a store at these addresses.
fn configuration_at(
    store: &Store,
    places: &str,
    (node, all): (&str, &[&str]),
    limits: &str,
    more: &str,
) -> String {
    let directory = store.directory();
    let file = |name: &str| directory.join(name).display().to_string();
    format!(
        "{limits}\nstate: {}\nfleet: {{store: 'rediss://edge@{places}/0', name: edge, node: {node}, \
         nodes: {}, key-file: {}, password-file: {}, ca-file: {}{more}}}\n",
        file(&format!("state-{node}")),
        all.len(),
        file("fleet.key"),
        file("password"),
        file("ca.pem"),
    )
}

fn ask(node: &Limiter, request: impl Into<Request>) -> Result<Value> {
    node.ask(&serde_json::to_value(request.into())?)
}

/// Returns the output of `limiter fleet status --json`.
fn status(node: &Limiter) -> Result<Value> {
    ask(node, FleetQuery)
}

/// Waits until a node's status is right.
fn wait_until(node: &Limiter, is_right: impl Fn(&Value) -> bool) -> Result<Value> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let status = status(node)?;
        if is_right(&status) {
            return Ok(status);
        }
        ensure!(
            Instant::now() < deadline,
            "the fleet is not as it should be: {status:#}\n{}",
            node.log()?
        );
        thread::sleep(PACE);
    }
}

/// Returns a node's active bans of a prefix.
fn bans_of(node: &Limiter, prefix: &str) -> Result<Vec<Value>> {
    let whole = || prefix.parse::<IpAddr>().map(IpNet::from);
    let prefix: IpNet = prefix.parse().or_else(|_| whole())?;
    let (mut bans, mut position) = (BTreeMap::new(), None);
    loop {
        let query = BansQuery {
            prefix: Some(prefix),
            origin: None,
            position,
        };
        let page = client::send_request(&node.socket(), query)?;
        // A ban that moves between two pages is in both.
        for ban in page.bans {
            let id = (ban.prefix, ban.origin.to_string());
            bans.insert(id, serde_json::to_value(ban)?);
        }
        position = page.next;
        if position.is_none() {
            return Ok(bans.into_values().collect());
        }
    }
}

/// Waits until a node has so many active bans of a prefix; returns them.
fn wait_for(node: &Limiter, prefix: &str, number: usize) -> Result<Vec<Value>> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let bans = bans_of(node, prefix)?;
        if bans.len() == number {
            return Ok(bans);
        }
        ensure!(
            Instant::now() < deadline,
            "{prefix} has not {number} bans: {bans:?}\n{}\n{:#}",
            node.log()?,
            status(node)?
        );
        thread::sleep(PACE);
    }
}

/// Writes a file readable only by its owner.
fn write_secret(file: &Path, secret: &str) -> Result<()> {
    fs::write(file, secret)?;
    fs::set_permissions(file, fs::Permissions::from_mode(0o600))?;
    Ok(())
}
