//! Starts the servers: NSD with one zone or many; unbound, which queries NSD; BIND and dnsmasq with the same zone; and
//! nginx with two files.

use std::{
    fmt::Write as _,
    fs::{self, File},
    net::{IpAddr, SocketAddr, TcpStream},
    process::{Child, Stdio},
    thread,
    time::Instant,
};

use anyhow::{Context as _, Result, bail};
use tempfile::TempDir;
use testbed::{Namespace, Pair};

use super::program;
use crate::{PACE, PATIENCE};

/// The address of every name in the zone `example.test`.
pub(super) const ADDRESS: &str = "192.0.2.80";

const ZONE: &str = "\
$TTL 3600
@ IN SOA ns hostmaster 1 7200 3600 1209600 3600
@ IN NS ns
ns IN A 10.77.0.1
* IN A 192.0.2.80
";

/// unbound's address, in the clients' namespace.
pub(super) const RESOLVER: &str = "127.0.0.1";

/// A running server. On drop it ends, and soon afterwards all of its processes.
pub(super) struct Server {
    child: Child,
    directory: TempDir,
}

impl Server {
    pub(super) fn nsd(pair: &Pair) -> Result<Self> {
        Self::nsd_with(pair, "", &["example.test".to_owned()])
    }

    /// Starts NSD with these zones, each with the same names.
    pub(super) fn nsd_with_zones(pair: &Pair, zones: &[String]) -> Result<Self> {
        Self::nsd_with(pair, "", zones)
    }

    /// Starts NSD with server cookies by this secret.
    pub(super) fn nsd_with_secret(pair: &Pair, secret: &str) -> Result<Self> {
        let options = format!("  answer-cookie: yes\n  cookie-secret: \"{secret}\"\n");
        Self::nsd_with(pair, &options, &["example.test".to_owned()])
    }

    fn nsd_with(pair: &Pair, options: &str, zones: &[String]) -> Result<Self> {
        let directory = tempfile::tempdir()?;
        let path = directory.path().display();
        let mut configuration = format!(
            "server:
  ip-address: 10.77.0.1
  ip-address: fd77::1
  server-count: 1
  username: \"\"
  zonesdir: {path}
  pidfile: {path}/pid
  database: \"\"
  xfrdfile: \"\"
  zonelistfile: {path}/zones
  rrl-ratelimit: 0
{options}remote-control:
  control-enable: no
"
        );
        for zone in zones {
            writeln!(configuration, "zone:\n  name: {zone}\n  zonefile: zone")?;
        }
        fs::write(directory.path().join("zone"), ZONE)?;
        let mut server = Self::start(
            "nsd",
            &["-d", "-c"],
            &pair.server,
            directory,
            &configuration,
        )?;
        server.wait_until_up(&pair.server, ("10.77.0.1", 53))?;
        server.wait_until_up(&pair.server, ("fd77::1", 53))?;
        Ok(server)
    }

    pub(super) fn bind(pair: &Pair) -> Result<Self> {
        let directory = tempfile::tempdir()?;
        let path = directory.path().display();
        let configuration = format!(
            "options {{
  directory \"{path}\";
  listen-on {{ 10.77.0.1; }};
  listen-on-v6 {{ none; }};
  pid-file none;
  session-keyfile none;
  recursion no;
}};
controls {{ }};
zone \"example.test\" {{ type primary; file \"zone\"; }};
"
        );
        fs::write(directory.path().join("zone"), ZONE)?;
        let arguments = ["-g", "-c"];
        let mut server = Self::start("named", &arguments, &pair.server, directory, &configuration)?;
        server.wait_until_up(&pair.server, ("10.77.0.1", 53))?;
        Ok(server)
    }

    pub(super) fn dnsmasq(pair: &Pair) -> Result<Self> {
        let directory = tempfile::tempdir()?;
        let configuration = format!(
            "user=root
no-resolv
no-hosts
bind-interfaces
listen-address=10.77.0.1
address=/example.test/{ADDRESS}
"
        );
        let arguments = ["-d", "-C"];
        let mut server = Self::start(
            "dnsmasq",
            &arguments,
            &pair.server,
            directory,
            &configuration,
        )?;
        server.wait_until_up(&pair.server, ("10.77.0.1", 53))?;
        Ok(server)
    }

    /// Starts unbound, which queries a server from one address; also returns its port. Each family has its own port,
    /// because another unbound may still be ending.
    pub(super) fn unbound(pair: &Pair, server: IpAddr, from: IpAddr) -> Result<(Self, u16)> {
        let directory = tempfile::tempdir()?;
        let path = directory.path().display();
        let (port, ip4, ip6) = match server {
            IpAddr::V4(_) => (5304, "yes", "no"),
            IpAddr::V6(_) => (5306, "no", "yes"),
        };
        // unbound sends names in random case, and the server must echo them.
        let configuration = format!(
            "server:
  interface: {RESOLVER}@{port}
  outgoing-interface: {from}
  do-ip4: yes
  prefer-ip4: {ip4}
  prefer-ip6: {ip6}
  num-threads: 1
  username: \"\"
  chroot: \"\"
  directory: {path}
  pidfile: {path}/pid
  use-syslog: no
  module-config: iterator
  use-caps-for-id: yes
  local-zone: test. nodefault
forward-zone:
  name: .
  forward-addr: {server}
remote-control:
  control-enable: no
"
        );
        let arguments = ["-d", "-c"];
        let mut unbound = Self::start(
            "unbound",
            &arguments,
            &pair.client,
            directory,
            &configuration,
        )?;
        unbound.wait_until_up(&pair.client, (RESOLVER, port))?;
        Ok((unbound, port))
    }

    /// Starts nginx with files of these names and lengths.
    pub(super) fn nginx(pair: &Pair, files: &[(&str, usize)]) -> Result<Self> {
        Self::nginx_with(pair, files, "")
    }

    /// Starts nginx with extra options in its server section.
    pub(super) fn nginx_with(pair: &Pair, files: &[(&str, usize)], options: &str) -> Result<Self> {
        let directory = tempfile::tempdir()?;
        let path = directory.path().display();
        let configuration = format!(
            "user root;
daemon off;
worker_processes 1;
pid {path}/pid;
error_log stderr;
events {{ worker_connections 4096; }}
http {{
  access_log off;
  client_body_temp_path {path}/body;
  proxy_temp_path {path}/proxy;
  fastcgi_temp_path {path}/fastcgi;
  uwsgi_temp_path {path}/uwsgi;
  scgi_temp_path {path}/scgi;
  server {{
    listen 10.77.0.1:80;
    listen [fd77::1]:80;
    root {path};
    {options}
  }}
}}
"
        );
        for (name, bytes) in files {
            fs::write(directory.path().join(name), vec![b'x'; *bytes])?;
        }
        let arguments = ["-e", "stderr", "-c"];
        let mut server = Self::start("nginx", &arguments, &pair.server, directory, &configuration)?;
        server.wait_until_up(&pair.server, ("10.77.0.1", 80))?;
        server.wait_until_up(&pair.server, ("fd77::1", 80))?;
        Ok(server)
    }

    /// Starts a server in the foreground with these arguments; the path of a file follows the last one.
    fn start(
        name: &str,
        arguments: &[&str],
        namespace: &Namespace,
        directory: TempDir,
        configuration: &str,
    ) -> Result<Self> {
        let file = directory.path().join("server.conf");
        fs::write(&file, configuration)?;
        let log = File::create(directory.path().join("log"))?;
        let mut command = program::server(namespace, name)?;
        let command = command.args(arguments).arg(file);
        let command = command.stdin(Stdio::null()).stdout(log.try_clone()?);
        let child = command.stderr(log).spawn();
        let child = child.with_context(|| format!("cannot run {name}"))?;
        Ok(Self { child, directory })
    }

    /// Waits until the server accepts TCP connections.
    fn wait_until_up(&mut self, namespace: &Namespace, address: (&str, u16)) -> Result<()> {
        let address = SocketAddr::new(address.0.parse()?, address.1);
        let deadline = Instant::now() + PATIENCE;
        while !namespace.enter(|| Ok(TcpStream::connect(address).is_ok()))? {
            let ended = self.child.try_wait()?;
            if ended.is_some() || Instant::now() > deadline {
                let log = fs::read_to_string(self.directory.path().join("log"))?;
                bail!("no server at {address} ({ended:?}):\n{log}");
            }
            thread::sleep(PACE);
        }
        Ok(())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // The server may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
