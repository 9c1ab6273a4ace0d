//! `limiter ban`, `unban` and `bans`, as users see them.

mod guard;
mod hits;
mod kept;
mod made;
mod migrated;
mod origins;
mod stream;

use std::{net::IpAddr, path::Path};

use anyhow::{Context as _, Result};
use serde_json::Value;
use testbed::{CLIENT_INTERFACE, Frame, Limiter, Pair, RawSender, SERVER_INTERFACE};

use crate::{BINARY, GOOD, pinned::Pinned, succeed, text, wait_for};

const CLIENT: &str = "10.77.0.2";
const NEIGHBOUR: &str = "10.77.0.3";

/// Makes a pair of namespaces with addresses of both families on each end.
fn pair() -> Result<Pair> {
    Pair::new(
        &["10.77.0.2/24".parse()?, "fd77::2/64".parse()?],
        &["10.77.0.1/24".parse()?, "fd77::1/64".parse()?],
    )
}

/// Starts a limiter that neither pins nor has a state file.
fn start(pair: &Pair) -> Result<Limiter> {
    let arguments = ["-i", SERVER_INTERFACE, "--metrics", "off"];
    Limiter::start(Path::new(BINARY), &pair.server, GOOD, &arguments)
}

/// Returns whether a packet from an address is dropped because of a ban.
fn is_banned(pair: &Pair, limiter: &Limiter, source: &str) -> Result<bool> {
    let source: IpAddr = source.parse()?;
    let destination = match source {
        IpAddr::V4(_) => "10.77.0.1",
        IpAddr::V6(_) => "fd77::1",
    };
    let frame = Frame::new(source, destination.parse()?).udp(1, 2, b"x")?;
    let banned = || count(&limiter.status()?, "banned");
    let (before, received) = (banned()?, pair.received()?);
    RawSender::new(&pair.client, CLIENT_INTERFACE)?.send_frames(&[frame])?;
    wait_for(|| Ok(pair.received()? > received))?;
    Ok(banned()? > before)
}

fn count(status: &Value, reason: &str) -> Result<u64> {
    let count = status["reasons"][reason].as_u64();
    count.with_context(|| format!("no count of {reason}"))
}

/// Returns each ban of `limiter bans --json`, with this field of it.
fn listed(pinned: &Pinned, field: &str) -> Result<Vec<(String, Value)>> {
    let output = succeed(pinned.with_pins("bans").arg("--json"))?;
    reported(text(&output.stdout)?, field)
}

fn reported(json: &str, field: &str) -> Result<Vec<(String, Value)>> {
    let list: Value = serde_json::from_str(json)?;
    let bans = list["bans"].as_array().context("a list")?.iter();
    let pairs = bans.map(|ban| Some((ban["prefix"].as_str()?.to_owned(), ban[field].clone())));
    pairs.collect::<Option<_>>().context("prefixes")
}
