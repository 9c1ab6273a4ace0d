//! A Cluster of servers that use TLS, also among themselves.

use std::fmt::Write as _;

use anyhow::Result;

use super::{
    servers::{ADDRESS, Server},
    store::{RIGHTS, Store},
};
use crate::{
    peers::{program, succeed},
    wait,
};

/// The port of the first server; each other's is one higher.
const FIRST_PORT: usize = 7_201;

/// The servers, by number; `None`: killed.
pub(super) struct Cluster(Vec<Option<Server>>);

impl Cluster {
    /// Starts so many servers, each with an equal part of all keys.
    pub(super) fn start(store: &Store, servers: usize) -> Result<Self> {
        let mut cluster = Self(Vec::new());
        let mut join = vec!["--cluster".to_owned(), "create".to_owned()];
        for number in 0..servers {
            cluster.0.push(Some(run(store, number)?));
            join.push(place(number));
        }
        join.push("--cluster-yes".to_owned());
        let join: Vec<_> = join.iter().map(String::as_str).collect();
        ask(store, 0, &join)?;
        cluster.wait(store)?;
        Ok(cluster)
    }

    pub(super) fn add_replica(&mut self, store: &Store, of: usize) -> Result<()> {
        let number = self.0.len();
        self.0.push(Some(run(store, number)?));
        let port = port(number).to_string();
        ask(store, 0, &["CLUSTER", "MEET", ADDRESS, &port])?;
        let id = id(store, of)?;
        wait(|| Ok(ask(store, number, &["CLUSTER", "NODES"])?.contains(&id)))?;
        ask(store, number, &["CLUSTER", "REPLICATE", &id])?;
        wait(|| {
            Ok(ask(store, number, &["INFO", "replication"])?.contains("master_link_status:up"))
        })?;
        self.wait(store)
    }

    /// Waits until all servers report a healthy Cluster.
    fn wait(&self, store: &Store) -> Result<()> {
        let known = format!("cluster_known_nodes:{}", self.0.len());
        wait(|| {
            let mut is_ok = true;
            for number in 0..self.0.len() {
                let reported = ask(store, number, &["CLUSTER", "INFO"])?;
                is_ok &= reported.contains("cluster_state:ok") && reported.contains(&known);
            }
            Ok(is_ok)
        })
    }

    /// Kills a server. It has stored only the members of the Cluster.
    pub(super) fn kill(&mut self, number: usize) {
        self.0[number] = None;
    }
}

fn port(number: usize) -> usize {
    FIRST_PORT + number
}

pub(super) fn place(number: usize) -> String {
    format!("{ADDRESS}:{}", port(number))
}

/// Returns a server's id in the Cluster.
fn id(store: &Store, number: usize) -> Result<String> {
    Ok(ask(store, number, &["CLUSTER", "MYID"])?.trim().to_owned())
}

/// Sends a command to a server, with all rights.
pub(super) fn ask(store: &Store, number: usize, arguments: &[&str]) -> Result<String> {
    let mut command = program::command(store.namespace(), "redis-cli")?;
    let port = port(number).to_string();
    command.args(["-h", ADDRESS, "-p", &port, "--tls", "--cacert"]);
    succeed(
        command
            .arg(store.directory().join("ca.pem"))
            .args(arguments),
    )
}

fn run(store: &Store, number: usize) -> Result<Server> {
    let place = store.directory().display();
    let port = u16::try_from(port(number))?;
    let mut lines = format!(
        "port 0\ntls-port {port}\ntls-cluster yes\ntls-replication yes\ntls-auth-clients no\n\
         tls-cert-file {place}/store.pem\ntls-key-file {place}/store.key\ntls-ca-cert-file {place}/ca.pem\n"
    );
    write!(
        lines,
        "cluster-enabled yes\ncluster-node-timeout 1000\ncluster-require-full-coverage no\n\
         repl-diskless-sync-delay 0\nsave \"\"\nuser edge on >hush {RIGHTS}"
    )?;
    Server::start(store, port, false, &lines)
}
