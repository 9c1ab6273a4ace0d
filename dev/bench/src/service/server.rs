//! The real servers: NSD, Knot and nginx, each on one CPU.

use std::{
    fmt::Write as _,
    fs::{self, File},
    io::{Read as _, Write as _},
    net::{IpAddr, SocketAddr, TcpStream, UdpSocket},
    os::unix::process::CommandExt as _,
    process::{Child, Stdio},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, bail};
use nix::{
    sys::signal::{Signal, killpg},
    unistd::{Pid, setsid},
};
use tempfile::TempDir;
use testbed::{Interrupt, Pair};

use super::{
    dns,
    setup::{CLIENTS_CPU, SERVER_CPU},
};
use crate::{
    cpu::{self, HurryingSession},
    scenario::SERVER_V6,
    tool,
};

/// How long a server may take to start.
const PATIENCE: Duration = Duration::from_secs(10);

/// How long to wait for the response to one try.
const PACE: Duration = Duration::from_millis(100);

/// The measured services.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Service {
    /// DNS, over UDP and TCP.
    Dns,
    /// HTTP.
    Web,
}

impl Service {
    pub(crate) const fn port(self) -> u16 {
        match self {
            Self::Dns => 53,
            Self::Web => 80,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Program {
    Nsd,
    Knot,
    Nginx,
}

impl Program {
    const fn command(self) -> &'static str {
        match self {
            Self::Nsd => "nsd",
            Self::Knot => "knotd",
            Self::Nginx => "nginx",
        }
    }

    const fn service(self) -> Service {
        match self {
            Self::Nsd | Self::Knot => Service::Dns,
            Self::Nginx => Service::Web,
        }
    }

    /// Returns why it cannot run, if so.
    pub(crate) fn missing(self) -> Option<String> {
        tool::missing(&[self.command(), "unshare"])
    }

    /// Returns the arguments that keep it in the foreground, configured in `directory`.
    fn arguments(self, directory: &str) -> Vec<String> {
        let file = format!("{directory}/server.conf");
        let arguments = match self {
            Self::Nsd => vec!["-d", "-c", &file],
            Self::Knot => vec!["-c", &file],
            Self::Nginx => vec!["-p", directory, "-e", "stderr", "-c", &file],
        };
        arguments.into_iter().map(str::to_owned).collect()
    }

    /// Returns the configuration: one process that answers, and no limit of the server's own except
    /// Knot's.
    pub(crate) fn configuration(self, directory: &str) -> String {
        let zone = dns::ZONE;
        match self {
            Self::Nsd => format!(
                "server:
  ip-address: 198.18.0.1
  ip-address: {SERVER_V6}
  server-count: 1
  username: \"\"
  zonesdir: {directory}
  pidfile: {directory}/pid
  database: \"\"
  xfrdfile: \"\"
  zonelistfile: {directory}/zones
  rrl-ratelimit: 0
remote-control:
  control-enable: no
zone:
  name: {zone}
  zonefile: zone
"
            ),
            Self::Knot => format!(
                "server:
  listen: [198.18.0.1@53, {SERVER_V6}@53]
  user: root:root
  rundir: {directory}
  udp-workers: 1
  tcp-workers: 1
  background-workers: 1
database:
  storage: {directory}/db
mod-rrl:
  - id: default
    rate-limit: 200
    slip: 2
template:
  - id: default
    storage: {directory}
    global-module: mod-rrl/default
zone:
  - domain: {zone}
    file: zone
"
            ),
            Self::Nginx => {
                let mut paths = String::new();
                for kind in ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"] {
                    let _ = writeln!(paths, "  {kind}_temp_path {directory}/{kind};");
                }
                format!(
                    "daemon off;
master_process off;
error_log stderr crit;
pid {directory}/pid;
events {{ worker_connections 4096; }}
http {{
  access_log off;
{paths}  server {{
    listen 198.18.0.1:80;
    listen [{SERVER_V6}]:80;
    return 200 \"served\";
  }}
}}
"
                )
            }
        }
    }
}

/// A client's HTTP request, and the end of the response.
pub(super) const REQUEST: &[u8] =
    b"GET / HTTP/1.1\r\nHost: www.example.test\r\nConnection: close\r\n\r\n";
pub(super) const SERVED: &[u8] = b"served";

/// A running server. Dropping it kills all of its processes; they also end with the thread that
/// started it.
pub(super) struct Server {
    child: Child,
    directory: TempDir,
    _hurry: Option<HurryingSession>,
}

impl Server {
    /// Starts the server on its CPU, and waits until it answers.
    pub(super) fn start(program: Program, pair: &Pair, interrupt: &Interrupt) -> Result<Self> {
        let directory = tempfile::tempdir().context("cannot make a temporary directory")?;
        let path = directory
            .path()
            .to_str()
            .context("a strange temporary directory")?;
        fs::write(
            directory.path().join("zone"),
            format!("$ORIGIN {}.\n{}", dns::ZONE, dns::RECORDS),
        )?;
        fs::create_dir(directory.path().join("db"))?;
        fs::write(
            directory.path().join("server.conf"),
            program.configuration(path),
        )?;
        let log = File::create(directory.path().join("log"))?;
        // The server inherits the CPU. It is the first process of a process namespace, so all of
        // its children end with it. It has its own session: Ctrl-C on the terminal then ends only
        // the benchmark, which ends the server, and the session gets the CPU share of one process,
        // like the receiving thread.
        let mut command = pair.server.command("unshare");
        command
            .args(["--pid", "--fork", "--kill-child=KILL", "nice", "-n"])
            .arg(cpu::HURRY.to_string())
            .arg(program.command())
            .args(program.arguments(path))
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log);
        // SAFETY: between fork and exec, the child only calls setsid, which neither allocates nor
        // locks.
        unsafe { command.pre_exec(|| Ok(setsid().map(drop)?)) };
        cpu::pin(SERVER_CPU)?;
        let child = command.spawn().context("cannot run `unshare`");
        cpu::pin(CLIENTS_CPU)?;
        let child = child?;
        let mut server = Self {
            _hurry: HurryingSession::of(child.id())?,
            child,
            directory,
        };
        server.wait_until_up(program, pair, interrupt)?;
        Ok(server)
    }

    /// Returns the process group of all its processes.
    pub(super) fn group(&self) -> u32 {
        self.child.id()
    }

    fn wait_until_up(
        &mut self,
        program: Program,
        pair: &Pair,
        interrupt: &Interrupt,
    ) -> Result<()> {
        let deadline = Instant::now() + PATIENCE;
        for address in ["198.18.0.1", SERVER_V6] {
            let address = SocketAddr::new(address.parse()?, program.service().port());
            while !pair
                .client
                .enter(|| Ok(check_response(program.service(), address).is_ok()))?
            {
                interrupt.check()?;
                let ended = self.child.try_wait()?;
                if ended.is_some() || Instant::now() > deadline {
                    let log = fs::read_to_string(self.directory.path().join("log"))?;
                    let failure = if ended.is_some() {
                        "ended"
                    } else {
                        "does not answer"
                    };
                    bail!(
                        "{} {failure} at {address}:\n{}",
                        program.command(),
                        log.trim()
                    );
                }
                thread::sleep(PACE);
            }
        }
        Ok(())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // The process may have ended already.
        if let Ok(group) = i32::try_from(self.child.id()) {
            let _ = killpg(Pid::from_raw(group), Signal::SIGKILL);
        }
        let _ = self.child.wait();
    }
}

/// Sends one request; fails without a response.
fn check_response(service: Service, server: SocketAddr) -> Result<()> {
    let mut bytes = vec![0; 4096];
    match service {
        Service::Dns => {
            let any: IpAddr = if server.is_ipv4() {
                [0; 4].into()
            } else {
                [0_u16; 8].into()
            };
            let socket = UdpSocket::bind((any, 0))?;
            socket.set_read_timeout(Some(PACE))?;
            socket.send_to(&dns::query(1), server)?;
            let length = socket.recv(&mut bytes)?;
            dns::parse_response(&bytes[..length]).context("no response")?;
        }
        Service::Web => {
            let mut stream = TcpStream::connect_timeout(&server, PACE)?;
            stream.set_read_timeout(Some(PACE))?;
            stream.write_all(REQUEST)?;
            bytes.clear();
            stream.read_to_end(&mut bytes)?;
            if !bytes.ends_with(SERVED) {
                bail!("no response");
            }
        }
    }
    Ok(())
}
