//! Answers as real programs take them: a DNS server and a web server behind the limiter; dig, kdig,
//! unbound and curl in front of them. Bans as fail2ban and CrowdSec's bouncer make them. And metrics,
//! rules and the dashboard, as Prometheus' promtool takes them; and the page, as Chromium shows it.

mod bans;
mod contradictory_names;
mod cookies;
mod dns;
mod fleet;
mod hidden_names;
mod metrics;
mod monitoring;
mod named_connections;
mod names;
mod odd_questions;
mod overrides;
mod own_client;
mod page;
mod program;
mod public_suffixes;
mod queue;
mod refused;
mod second_hello;
mod server;
mod server_names;
mod suggested;
mod web;
mod zones;

use std::{path::Path, process::Command};

use anyhow::{Context as _, Result, ensure};
use testbed::{CLIENT_INTERFACE, Frame, Limiter, Pair, RawSender, SERVER_INTERFACE};

/// Refuses nothing: a program on the peer's interface. Without it a veth pair loses packets that the
/// driver sends back.
const PASSES: &str =
    "limits: {All: {id: total, cost: packets, burst: 1000000, count: 1000000, period: 1s}}";

/// A limiter before the server, and the clients' program that takes its answers.
struct Defence {
    limiter: Limiter,
    peer: Option<Limiter>,
}

impl Defence {
    /// Answers from the kernel's network stack, which reach any peer.
    fn generic(pair: &Pair, configuration: &str) -> Result<Self> {
        Ok(Self {
            limiter: start(pair, configuration, "generic")?,
            peer: None,
        })
    }

    /// Answers from the driver, to a peer with a native program.
    fn native(pair: &Pair, configuration: &str) -> Result<Self> {
        let arguments = ["-i", CLIENT_INTERFACE, "--mode", "native"];
        let peer = Limiter::start(binary(), &pair.client, PASSES, &arguments)?;
        Ok(Self {
            limiter: start(pair, configuration, "native")?,
            peer: Some(peer),
        })
    }

    fn stop(self) -> Result<()> {
        for limiter in [Some(self.limiter), self.peer].into_iter().flatten() {
            ensure!(limiter.stop()?.success());
        }
        Ok(())
    }
}

fn start(pair: &Pair, configuration: &str, mode: &str) -> Result<Limiter> {
    pair.compute_checksums()?;
    let arguments = ["-i", SERVER_INTERFACE, "--mode", mode];
    Limiter::start(binary(), &pair.server, configuration, &arguments)
}

fn binary() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_limiter"))
}

/// Sends a frame of a source that never asks.
fn spend(pair: &Pair, frame: impl FnOnce(Frame) -> Result<Vec<u8>>) -> Result<()> {
    let frame = frame(Frame::new("10.77.0.9".parse()?, "10.77.0.1".parse()?))?;
    RawSender::new(&pair.client, CLIENT_INTERFACE)?.send_frames(&[frame])?;
    Ok(())
}

/// Returns how many answers of a kind a limit has sent.
fn sent(limiter: &Limiter, limit: &str, answer: &str) -> Result<u64> {
    let status = limiter.status()?;
    let sent = status["limits"][limit]["answers"][answer].as_u64();
    sent.with_context(|| format!("no {answer} of {limit} in {status:#}"))
}

/// Runs a command, and returns its stdout.
fn succeed(command: &mut Command) -> Result<String> {
    let output = command
        .output()
        .with_context(|| format!("cannot run {command:?}"))?;
    ensure!(output.status.success(), "{command:?} fails: {output:?}");
    Ok(String::from_utf8(output.stdout)?)
}
