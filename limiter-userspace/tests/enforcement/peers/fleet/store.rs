//! A redis-server in a namespace with a link to each node.

use std::{
    fs::{self, File},
    net::{SocketAddr, TcpStream},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread,
    time::Instant,
};

use anyhow::{Context as _, Result, bail};
use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use tempfile::TempDir;
use testbed::{Namespace, RawSender};

use super::{PACE, PATIENCE, write_secret};
use crate::peers::{program, succeed};

/// The nodes' interface.
pub(super) const UPLINK: &str = "up0";

/// The fleet's key.
pub(super) const KEY: &str = "9ca35d1c0f2ae4a1b20a6e5d08cdb6d2a4f0d6f6f0b9b1a7f5a2f1c6f3e0d9b8";

/// The rights of a node in docs/fleet.md.
pub(super) const RIGHTS: &str = "~limiter:{edge}:* -@all +hset +hmget +hdel +hscan +hlen +del +time +evalsha \
                                 +script|load +info +xadd +xread +xrange +xrevrange +multi +exec";

/// A store that ends on drop.
pub(super) struct Store {
    namespace: Namespace,
    /// The nodes' namespaces.
    pub(super) nodes: Vec<Namespace>,
    directory: TempDir,
    child: Option<Child>,
    disk: Disk,
}

/// The disk of a store.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Disk {
    /// No disk.
    None,
    /// A small filesystem in memory, private to the store.
    Small,
}

/// Returns the store's address on the link to a node, counted from 1.
pub(super) fn address(number: usize) -> String {
    format!("10.80.{number}.1")
}

/// Returns the address of a node, counted from 1.
pub(super) fn node_address(number: usize) -> String {
    format!("10.80.{number}.2")
}

impl Store {
    pub(super) fn start(nodes: usize) -> Result<Self> {
        Self::on(Disk::None, nodes)
    }

    /// Starts a store with such a disk.
    pub(super) fn on(disk: Disk, nodes: usize) -> Result<Self> {
        let nodes = (0..nodes).map(|_| Namespace::new());
        Self::among(nodes.collect::<Result<_>>()?, disk)
    }

    /// Starts a store linked to these nodes.
    pub(super) fn among(nodes: Vec<Namespace>, disk: Disk) -> Result<Self> {
        let mut store = Self {
            namespace: Namespace::new()?,
            nodes,
            directory: tempfile::tempdir()?,
            child: None,
            disk,
        };
        for (number, node) in (1..).zip(&store.nodes) {
            link(&store.namespace, number, node)?;
        }
        write_secret(&store.directory().join("fleet.key"), KEY)?;
        write_secret(&store.directory().join("password"), "hush")?;
        certify(store.directory(), store.nodes.len())?;
        store.run()?;
        Ok(store)
    }

    pub(super) fn directory(&self) -> &Path {
        self.directory.path()
    }

    pub(super) const fn namespace(&self) -> &Namespace {
        &self.namespace
    }

    /// Starts redis-server, initially empty.
    pub(super) fn run(&mut self) -> Result<()> {
        let place = self.directory().display();
        let append = match self.disk {
            Disk::None => "no",
            Disk::Small => "yes",
        };
        let configuration = format!(
            "bind 0.0.0.0
protected-mode no
port 6379
tls-port 6380
tls-cert-file {place}/store.pem
tls-key-file {place}/store.key
tls-ca-cert-file {place}/ca.pem
tls-auth-clients no
save \"\"
appendonly {append}
proto-max-bulk-len 1mb
dir {place}/disk
user edge on >hush {RIGHTS}
"
        );
        let file = self.directory().join("redis.conf");
        fs::write(&file, configuration)?;
        let log = File::create(self.directory().join("redis.log"))?;
        fs::create_dir_all(self.disk())?;
        let mut command = match self.disk {
            Disk::None => program::command(&self.namespace, "redis-server")?,
            Disk::Small => {
                let mut command = program::command(&self.namespace, "unshare")?;
                let mount = "mount -t tmpfs -o size=1m none \"$0\" && exec \"$1\" \"$2\"";
                command
                    .args(["--mount", "sh", "-c", mount])
                    .arg(self.disk());
                command.arg(program::find("redis-server")?);
                command
            }
        };
        let command = command.arg(file).stdin(Stdio::null());
        let child = command.stdout(log.try_clone()?).stderr(log).spawn();
        let child = self.child.insert(child.context("cannot run redis-server")?);
        let address = SocketAddr::new("127.0.0.1".parse()?, 6380);
        let deadline = Instant::now() + PATIENCE;
        while !(self.namespace).enter(|| Ok(TcpStream::connect(address).is_ok()))? {
            let ended = child.try_wait()?;
            if ended.is_some() || Instant::now() > deadline {
                let log = fs::read_to_string(self.directory.path().join("redis.log"))?;
                bail!("no store at {address} ({ended:?}):\n{log}");
            }
            thread::sleep(PACE);
        }
        Ok(())
    }

    fn disk(&self) -> PathBuf {
        self.directory().join("disk")
    }

    /// Returns the path of a file on the small disk, seen from outside the store's mount namespace.
    pub(super) fn file_on_disk(&self, name: &str) -> Result<PathBuf> {
        let disk = self.disk();
        let inside = disk.strip_prefix("/").context("a relative path")?;
        let root = Path::new("/proc").join(self.id()?.to_string()).join("root");
        Ok(root.join(inside).join(name))
    }

    pub(super) fn id(&self) -> Result<u32> {
        let child = self.child.as_ref().context("the store does not run")?;
        Ok(child.id())
    }

    pub(super) fn signal(&self, signal: Signal) -> Result<()> {
        Ok(kill(Pid::from_raw(self.id()?.try_into()?), signal)?)
    }

    pub(super) fn kill(&mut self) -> Result<()> {
        if let Some(mut child) = self.child.take() {
            child.kill()?;
            child.wait()?;
        }
        Ok(())
    }

    /// Runs a command with all rights in the store, but without the fleet's key.
    pub(super) fn command(&self, arguments: &[&str]) -> Result<String> {
        let mut command = program::command(&self.namespace, "redis-cli")?;
        succeed(command.args(arguments))
    }

    /// Returns a sender of frames to a node, by its number.
    pub(super) fn sender(&self, number: usize) -> Result<RawSender> {
        RawSender::new(&self.namespace, &format!("n{number}"))
    }

    /// Sets the state of the link between the store and a node, `up` or `down`.
    pub(super) fn set_link(&self, number: usize, state: &str) -> Result<()> {
        let name = format!("n{number}");
        self.namespace.ip(&["link", "set", &name, state])?;
        Ok(())
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        // Fails if it has ended already.
        let _ = self.kill();
    }
}

fn link(store: &Namespace, number: usize, node: &Namespace) -> Result<()> {
    let name = format!("n{number}");
    let path = node.path();
    store.ip(&[
        "link", "add", &name, "type", "veth", "peer", "name", UPLINK, "netns", &path,
    ])?;
    store.ip(&[
        "address",
        "add",
        &format!("{}/24", address(number)),
        "dev",
        &name,
    ])?;
    store.ip(&["link", "set", &name, "up"])?;
    let own = format!("{}/24", node_address(number));
    node.ip(&["address", "add", &own, "dev", UPLINK])?;
    node.ip(&["link", "set", UPLINK, "up"])?;
    Ok(())
}

/// Makes a certificate for the store's addresses, and the certificate that signs it.
fn certify(directory: &Path, nodes: usize) -> Result<()> {
    let openssl = |arguments: &str| {
        let mut command = Command::new("openssl");
        command.args(arguments.split(' ')).current_dir(directory);
        succeed(&mut command)
    };
    let new = "req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2";
    openssl(&format!(
        "{new} -x509 -subj /CN=test -keyout ca.key -out ca.pem"
    ))?;
    openssl(&format!(
        "{new} -x509 -subj /CN=store -CA ca.pem -CAkey ca.key -keyout store.key \
                      -out store.pem -addext basicConstraints=critical,CA:FALSE -addext \
                      subjectAltName={}",
        names(nodes)
    ))?;
    Ok(())
}

fn names(nodes: usize) -> String {
    // The first address is the one of servers that all nodes have a route to.
    let names = (0..=nodes).map(|number| format!("IP:{}", address(number)));
    names.collect::<Vec<_>>().join(",")
}
