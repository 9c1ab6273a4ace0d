//! A store of several servers: a Cluster, or a server with a replica and a Sentinel.

use std::{
    fs::{self, File},
    net::{SocketAddr, TcpStream},
    process::{Child, Stdio},
};

use anyhow::{Context as _, Result, ensure};
use testbed::Limiter;

use super::{
    Fleet, PASSES,
    cluster::{self, Cluster},
    configuration_at,
    shared_limits::{
        DRAINED, Flood,
        nodes::{ALL, LIMITS},
        watch::Watch,
    },
    start,
    store::{self, RIGHTS, Store},
    wait_for, wait_until,
};
use crate::{
    peers::{program, succeed},
    wait,
};

/// The address of all servers; every node has a route to it.
pub(super) const ADDRESS: &str = "10.80.0.1";

/// A port without a listener.
const NOBODY: u16 = 7_999;

/// A server that ends on drop.
pub(super) struct Server(Child);

impl Server {
    /// Starts a Redis server or a Sentinel, with more lines in its configuration. A restarted server keeps
    /// its directory.
    pub(super) fn start(store: &Store, port: u16, sentinel: bool, lines: &str) -> Result<Self> {
        let directory = store.directory().join(port.to_string());
        fs::create_dir_all(&directory)?;
        let file = directory.join("redis.conf");
        let place = directory.display();
        fs::write(
            &file,
            format!("bind 0.0.0.0\nprotected-mode no\nport {port}\ndir {place}\n{lines}\n"),
        )?;
        let log = File::create(directory.join("log"))?;
        let mut command = program::command(store.namespace(), "redis-server")?;
        command.arg(file).stdin(Stdio::null());
        if sentinel {
            command.arg("--sentinel");
        }
        let child = command.stdout(log.try_clone()?).stderr(log).spawn();
        let server = Self(child.context("cannot run redis-server")?);
        let address: SocketAddr = format!("127.0.0.1:{port}").parse()?;
        wait(|| {
            let connect = || Ok(TcpStream::connect(address).is_ok());
            store.namespace().enter(connect)
        })
        .with_context(|| fs::read_to_string(directory.join("log")).unwrap_or_default())?;
        Ok(server)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Fails if it has ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Links nodes to a namespace for servers.
pub(super) fn place(nodes: usize) -> Result<Store> {
    let store = Store::start(nodes)?;
    let address = format!("{ADDRESS}/32");
    (store.namespace()).ip(&["address", "add", &address, "dev", "lo"])?;
    store.namespace().ip(&["link", "set", "lo", "up"])?;
    for (number, node) in (1..).zip(&store.nodes) {
        let by = store::address(number);
        node.ip(&["route", "add", ADDRESS, "via", &by])?;
    }
    Ok(store)
}

/// Sends a command to a server, with all rights.
fn ask(store: &Store, port: u16, arguments: &[&str]) -> Result<String> {
    let mut command = program::command(store.namespace(), "redis-cli")?;
    succeed(command.args(["-p", &port.to_string()]).args(arguments))
}

/// Returns the configuration of a node with a store at these addresses.
fn configuration(store: &Store, name: &str, places: &str) -> String {
    let file = |name: &str| store.directory().join(name).display().to_string();
    format!(
        "{LIMITS}\nstate: {}\nfleet: {{store: {places}, name: edge, node: {name}, key-file: {}, \
         password-file: {}}}\n",
        file(&format!("state-{name}")),
        file("fleet.key"),
        file("password"),
    )
}

/// Starts a node with a store at these addresses, and waits until it is connected.
fn node(store: &Store, number: usize, name: &str, places: &str) -> Result<Limiter> {
    let node = start(store, number, &configuration(store, name, places))?;
    wait_until(&node, |status| status["connected"] == true)?;
    Ok(node)
}

/// Each node starts at a different address: at most one of them is the server with the fleet's keys, and
/// one has no server.
#[test]
fn a_cluster_redirects_to_the_server_with_the_keys() -> Result<()> {
    let store = place(2)?;
    let _cluster = Cluster::start(&store, 3)?;
    let [one, two, three] = [0, 1, 2].map(cluster::place);
    let nodes = ["a", "b"];
    let start = |number: usize, places: &str| -> Result<Limiter> {
        let name = nodes[number - 1];
        let text = configuration_at(&store, places, (name, &nodes), PASSES, "");
        let node = start(&store, number, &text)?;
        wait_until(&node, |status| status["connected"] == true)?;
        Ok(node)
    };
    let a = start(1, &format!("{ADDRESS}:{NOBODY},{one}"))?;
    let b = start(2, &format!("{two},{three}"))?;
    a.show(&["ban", "203.0.113.0/24", "--for", "10m"])?;
    wait_for(&b, "203.0.113.0/24", 1)?;
    b.show(&["unban", "203.0.113.0/24"])?;
    wait_for(&a, "203.0.113.0/24", 0)?;
    a.stop()?;
    b.stop()?;
    Ok(())
}

/// The server dies, and the Sentinel promotes its replica: bans hold, and both nodes stay within the budget.
#[test]
fn nodes_follow_the_server_that_a_sentinel_names() -> Result<()> {
    let store = place(2)?;
    let lines = format!("save \"\"\nrepl-diskless-sync-delay 0\nuser edge on >hush {RIGHTS}");
    let server = Server::start(&store, 7_101, false, &lines)?;
    let replica = format!("{lines}\nreplicaof {ADDRESS} 7101\nreplica-announce-ip {ADDRESS}");
    let _replica = Server::start(&store, 7_102, false, &replica)?;
    wait(|| Ok(ask(&store, 7_101, &["INFO", "replication"])?.contains("state=online")))?;
    let watch = format!(
        "sentinel monitor main {ADDRESS} 7101 1\nsentinel down-after-milliseconds main 1000\n\
         sentinel failover-timeout main 3000"
    );
    let _sentinel = Server::start(&store, 7_103, true, &watch)?;
    // The Sentinel asks the server for its replicas every ten seconds.
    let replicas = ["SENTINEL", "REPLICAS", "main"];
    wait(|| Ok(ask(&store, 7_103, &replicas)?.contains("7102")))?;
    let places = format!("'redis://edge@{ADDRESS}:{NOBODY},{ADDRESS}:7103/0', sentinel: main");
    let mut fleet = Fleet {
        nodes: vec![
            node(&store, 1, "a", &places)?,
            node(&store, 2, "b", &places)?,
        ],
        store,
    };
    let (a, b, store) = (&fleet.nodes[0], &fleet.nodes[1], &fleet.store);
    let mut watch = Watch::begin_at(&fleet, &[ALL], |command| ask(store, 7_101, command))?;
    let flood = Flood::of(&fleet, 1)?;
    watch.used_within(&fleet, DRAINED)?;
    a.show(&["ban", "203.0.113.0/24", "--for", "10m"])?;
    wait_for(b, "203.0.113.0/24", 1)?;
    drop(server);
    // The node sends it while there is no server, or to the new one.
    a.show(&["ban", "198.51.100.0/24", "--for", "10m"])?;
    wait_for(b, "198.51.100.0/24", 1)?;
    wait_for(b, "203.0.113.0/24", 1)?;
    ensure!(
        ask(store, 7_102, &["HLEN", "limiter:{edge}:bans"])?.trim() == "2",
        "the replica has not both"
    );
    // The new server learns the leases from the nodes.
    watch.wait_for_use(&fleet, 95..=100)?;
    flood.stop()?;
    // The error names a server that the Sentinel does not know.
    let other = format!("'redis://edge@{ADDRESS}:7103/0', sentinel: other");
    let text = configuration(store, "b", &other);
    let b = fleet.nodes.pop().context("no second node")?;
    ensure!(b.stop()?.success());
    fleet.nodes.push(start(&fleet.store, 2, &text)?);
    wait_until(&fleet.nodes[1], |status| {
        status["error"] == "the Sentinels know no server 'other'"
    })?;
    fleet.stop()
}
