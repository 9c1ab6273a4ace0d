//! fail2ban and CrowdSec's custom bouncer ban and unban with the files in `dist/`; each lifts its own
//! bans only, and an operator lifts all.

mod crowdsec;
mod fail2ban;

use std::{
    net::IpAddr,
    path::{Path, PathBuf},
    process::Child,
    thread,
    time::Instant,
};

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;
use testbed::{CLIENT_INTERFACE, Frame, Limiter, Pair, RawSender, SERVER_INTERFACE};

use super::{PASSES, binary};
use crate::{PACE, PATIENCE};

/// The client that an operator bans as well, and the one that only the program bans.
const BOTH: &str = "198.51.100.7";
const ONE: &str = "198.51.100.8";

/// A process that ends on drop.
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        // Fails if it has ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn start(pair: &Pair) -> Result<Limiter> {
    let arguments = ["-i", SERVER_INTERFACE, "--metrics", "off"];
    Limiter::start(binary(), &pair.server, PASSES, &arguments)
}

fn dist(file: &str) -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    root.join("../dist").join(file)
}

/// Returns the origins and addresses of the bans that `limiter bans` lists with these arguments.
fn bans(limiter: &Limiter, arguments: &[&str]) -> Result<Vec<(String, String)>> {
    let shown = limiter.show(&[&["bans", "--json"], arguments].concat())?;
    let list: Value = serde_json::from_str(&shown)?;
    let bans = list["bans"].as_array().context("no bans")?.iter();
    let field = |ban: &Value, name: &str| ban[name].as_str().map(ToOwned::to_owned);
    bans.map(|ban| Some((field(ban, "origin")?, field(ban, "prefix")?)))
        .collect::<Option<_>>()
        .context("no origin")
}

/// Waits until an origin bans these addresses and no others.
fn wait_for_bans(limiter: &Limiter, origin: &str, addresses: &[&str]) -> Result<()> {
    let expected = addresses
        .iter()
        .map(|address| (origin.to_owned(), format!("{address}/32")));
    let expected: Vec<_> = expected.collect();
    let deadline = Instant::now() + PATIENCE;
    loop {
        let found = bans(limiter, &["--origin", origin])?;
        if found == expected {
            return Ok(());
        }
        ensure!(Instant::now() < deadline, "{found:?}, not {expected:?}");
        thread::sleep(PACE);
    }
}

/// Returns whether a packet of an address is dropped by a ban.
fn is_banned(pair: &Pair, limiter: &Limiter, source: &str) -> Result<bool> {
    let source: IpAddr = source.parse()?;
    let frame = Frame::new(source, "10.77.0.1".parse()?).udp(1, 2, b"x")?;
    let counted = || {
        let reasons = limiter.status()?["reasons"].take();
        let count = |reason: &str| reasons[reason].as_u64().context("no count");
        anyhow::Ok((count("banned")?, count("within_limits")?))
    };
    let before = counted()?;
    RawSender::new(&pair.client, CLIENT_INTERFACE)?.send_frames(&[frame])?;
    let deadline = Instant::now() + PATIENCE;
    loop {
        let now = counted()?;
        if now != before {
            return Ok(now.0 > before.0);
        }
        ensure!(Instant::now() < deadline, "the packet is not counted");
        thread::sleep(PACE);
    }
}

/// Checks that the operator's ban and the program's of one address stand side by side, the longer
/// first.
fn assert_both_ban(limiter: &Limiter, origin: &str) -> Result<()> {
    let found = bans(limiter, &[BOTH])?;
    let expected = ["operator", origin].map(|origin| (origin.to_owned(), format!("{BOTH}/32")));
    ensure!(found == expected, "{found:?}");
    Ok(())
}

/// Makes an operator lift all bans of an address.
fn assert_operator_lifts_all(limiter: &Limiter, origins: &str) -> Result<()> {
    let lifted = limiter.show(&["unban", BOTH])?;
    let bans = if origins.contains(',') {
        format!("the bans of {BOTH} are lifted: {origins}\n")
    } else {
        format!("the ban of {BOTH} is lifted: {origins}\n")
    };
    ensure!(lifted == bans, "{lifted}");
    Ok(())
}
