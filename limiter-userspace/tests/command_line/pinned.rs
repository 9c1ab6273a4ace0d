//! A pinned limiter for tests, with queries to it and to the kernel.

use std::{
    io::{Read as _, Write as _},
    net::{Ipv4Addr, TcpStream},
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;
use testbed::{
    CLIENT_INTERFACE, Frame, Limiter, Namespace, Pair, PinDirectory, RawSender, SERVER_INTERFACE,
};

use crate::{BINARY, pair, succeed, wait_for};

/// The default address of the metrics.
pub(crate) const METRICS: (Ipv4Addr, u16) = (Ipv4Addr::LOCALHOST, 9470);

/// A limiter on the server's interface, with a pin directory of its own.
pub(crate) struct Pinned {
    pub(crate) limiter: Limiter,
    pub(crate) pair: Pair,
    pub(crate) pins: PinDirectory,
}

impl Pinned {
    /// Starts it on the server's interface.
    pub(crate) fn start(configuration: &str) -> Result<Self> {
        Self::start_with(configuration, &["-i", SERVER_INTERFACE])
    }

    /// Starts it with these arguments added.
    pub(crate) fn start_with(configuration: &str, arguments: &[&str]) -> Result<Self> {
        let (pins, pair) = (PinDirectory::new()?, pair()?);
        let pin = pins.argument();
        let arguments = [arguments, &[&pin, "--log-format", "human"]].concat();
        let limiter = Limiter::start(Path::new(BINARY), &pair.server, configuration, &arguments)?;
        Ok(Self {
            limiter,
            pair,
            pins,
        })
    }

    /// Starts another daemon with these arguments added, after one has ended.
    pub(crate) fn restart_with(&mut self, arguments: &[&str]) -> Result<()> {
        let pin = self.pins.argument();
        let base = ["-i", SERVER_INTERFACE, "--log-format", "human", &pin];
        self.limiter.restart_with(&[&base[..], arguments].concat())
    }

    /// Puts another configuration in force.
    pub(crate) fn reload(&self, configuration: &str) -> Result<()> {
        self.limiter.configure(configuration)?;
        self.limiter.show(&["reload"]).map(drop)
    }

    /// Returns `limiter COMMAND` with the option for the pin directory.
    pub(crate) fn with_pins(&self, command: &str) -> Command {
        let mut command = self.limiter.command(&[command]);
        command.arg("--pin").arg(self.pins.path());
        command
    }

    /// Sends packets from an address, and waits until they are counted.
    pub(crate) fn send(&self, source: &str, packets: usize) -> Result<()> {
        send(&self.pair, source, packets)
    }

    /// Returns how many packets were counted under a reason.
    pub(crate) fn counted(&self, reason: &str) -> Result<u64> {
        let count = self.limiter.status()?["reasons"][reason].as_u64();
        count.with_context(|| format!("no count of {reason}"))
    }

    /// Returns the tokens that an address has left in a limit.
    pub(crate) fn remaining(&self, limit: &str, address: &str) -> Result<u64> {
        let explanation = self.limiter.explain(address)?;
        let limits = explanation["limits"].as_array();
        let mut limits = limits.context("explain shows no limits")?.iter();
        let found = limits.find(|found| found["limit"] == limit);
        let remaining = found.and_then(|found| found["remaining"].as_u64());
        remaining.with_context(|| format!("{limit} does not apply to {address}"))
    }

    /// Returns the link that holds the program on the server's interface.
    pub(crate) fn link(&self) -> Result<Value> {
        let files = self.pins.files()?;
        let links: Vec<&PathBuf> = files.iter().filter(|file| file.ends_with("link")).collect();
        let [link] = links[..] else {
            anyhow::bail!("expected one link, found {links:?}");
        };
        let mut bpftool = Command::new("bpftool");
        let output = succeed(bpftool.args(["--json", "link", "show", "pinned"]).arg(link))?;
        Ok(serde_json::from_slice(&output.stdout)?)
    }

    /// Fails unless nothing is attached and nothing is pinned.
    #[track_caller]
    pub(crate) fn assert_detached(&self) -> Result<()> {
        ensure!(!self.pins.path().exists(), "{:?}", self.pins.files()?);
        ensure!(program(&self.pair.server, SERVER_INTERFACE)?.is_none());
        Ok(())
    }
}

/// Sends packets from an address, and waits until they are counted.
pub(crate) fn send(pair: &Pair, source: &str, packets: usize) -> Result<()> {
    let frame = Frame::new(source.parse()?, "10.77.0.1".parse()?).udp(1, 2, &[0; 58])?;
    let received = pair.received()?;
    RawSender::new(&pair.client, CLIENT_INTERFACE)?.send_frames(&vec![frame; packets])?;
    wait_for(|| Ok(pair.received()? >= received + packets as u64))
}

/// Returns the id of the XDP program on an interface.
pub(crate) fn program(namespace: &Namespace, interface: &str) -> Result<Option<u64>> {
    let reported = namespace.ip(&["-json", "-details", "link", "show", interface])?;
    let links: Value = serde_json::from_str(&reported)?;
    Ok(links[0]["xdp"]["prog"]["id"].as_u64())
}

/// Returns the metrics as Prometheus scrapes them.
pub(crate) fn metrics(namespace: &Namespace) -> Result<String> {
    namespace.enter(|| {
        let mut stream = TcpStream::connect(METRICS)?;
        stream.write_all(b"GET /metrics HTTP/1.0\r\nHost: localhost\r\n\r\n")?;
        let mut response = String::new();
        stream.read_to_string(&mut response)?;
        Ok(response)
    })
}

/// Fails unless `line` soon appears in the metrics, which are renewed once a second.
#[track_caller]
pub(crate) fn assert_metric(namespace: &Namespace, line: &str) -> Result<()> {
    let mut reported = String::new();
    wait_for(|| {
        reported = metrics(namespace)?;
        Ok(reported.lines().any(|got| got == line))
    })
    .with_context(|| format!("{line} is not in\n{reported}"))
}
