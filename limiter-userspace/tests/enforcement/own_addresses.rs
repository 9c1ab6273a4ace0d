//! The server's own addresses as forged sources: no answer is sent to them.

use std::{fmt::Write as _, net::IpAddr, path::Path};

use anyhow::{Context as _, Result, ensure};
use testbed::{CLIENT_INTERFACE, Frame, Limiter, Pair, RawSender, SERVER_INTERFACE};

use crate::{pair, server_for, wait};

/// A DNS query of `example.com` for its address.
const QUERY: &[u8] = b"\x12\x34\x01\0\0\x01\0\0\0\0\0\0\x07example\x03com\0\0\x01\0\x01";

/// A server with a limit that answers any number of queries.
struct Scene {
    pair: Pair,
    limiter: Limiter,
    sender: RawSender,
}

impl Scene {
    fn new() -> Result<Self> {
        let pair = pair()?;
        let configuration = "limits: {All: {id: total, cost: packets, burst: 1, count: 1, \
                             period: 1h, deny: truncate}}\n\
                             answers: {per-prefix: {burst: 9999, count: 9999, period: 1s}}\n";
        let limiter = Limiter::start(
            Path::new(env!("CARGO_BIN_EXE_limiter")),
            &pair.server,
            configuration,
            &["-i", SERVER_INTERFACE, "--mode", "generic"],
        )?;
        let sender = RawSender::new(&pair.client, CLIENT_INTERFACE)?;
        let scene = Self {
            pair,
            limiter,
            sender,
        };
        // Spends the limit's token.
        scene.is_answered("10.77.0.2")?;
        Ok(scene)
    }

    /// Sends a query with this source; returns whether it is answered.
    fn is_answered(&self, source: &str) -> Result<bool> {
        let source: IpAddr = source.parse()?;
        let query = Frame::new(source, server_for(source)?).udp(4321, 53, QUERY)?;
        let before = self.counts()?;
        self.sender.send_frames(&[query])?;
        wait(|| Ok(self.counts()?.0 > before.0)).context("the query did not arrive")?;
        // The answer is counted after the packet.
        Ok(self.counts()?.1 > before.1)
    }

    /// Returns how many packets the limit has passed and dropped, and how many answers it sent.
    fn counts(&self) -> Result<(u64, u64)> {
        let status = self.limiter.status()?;
        let limit = &status["limits"]["All"];
        let count = |name: &str| limit[name].as_u64().context("a count");
        let answers = limit["answers"]["truncate"].as_u64().context("a count")?;
        Ok((
            count("passed_packets")? + count("dropped_packets")?,
            answers,
        ))
    }

    /// Waits until a source is answered, or no longer is.
    fn wait(&self, source: &str, answered: bool) -> Result<()> {
        let is_so = wait(|| Ok(self.is_answered(source)? == answered));
        is_so.with_context(|| format!("{source} is as it was"))
    }
}

#[test]
fn nothing_is_answered_to_the_servers_own_addresses() -> Result<()> {
    let scene = Scene::new()?;
    let server = &scene.pair.server;
    assert!(scene.is_answered("10.77.0.3")?);
    assert!(scene.is_answered("fd77:1:1::1")?);
    for (address, length) in [("10.77.0.9", 32), ("fd77::9", 128)] {
        assert!(scene.is_answered(address)?, "{address} is nobody's");
        let prefix = format!("{address}/{length}");
        server.ip(&["address", "add", &prefix, "dev", SERVER_INTERFACE, "nodad"])?;
        scene.wait(address, false)?;
        server.ip(&["address", "del", &prefix, "dev", SERVER_INTERFACE])?;
        scene.wait(address, true)?;
    }
    assert!(scene.limiter.stop()?.success());
    Ok(())
}

/// Addresses older than the daemon are known, and stay known after a reload.
#[test]
fn addresses_from_before_are_known_and_stay_so() -> Result<()> {
    let scene = Scene::new()?;
    // Other addresses of the server, as sources of queries to the ones of `server_for`.
    let server = &scene.pair.server;
    for prefix in ["10.77.0.8/32", "fd77::8/128"] {
        server.ip(&["address", "add", prefix, "dev", "lo", "nodad"])?;
    }
    let Scene {
        pair,
        mut limiter,
        sender,
    } = scene;
    limiter.terminate()?;
    limiter.restart()?;
    let scene = Scene {
        pair,
        limiter,
        sender,
    };
    scene.is_answered("10.77.0.2")?;
    for _ in 0..2 {
        assert!(scene.is_answered("10.77.0.3")?);
        assert!(!scene.is_answered("10.77.0.8")?);
        assert!(!scene.is_answered("fd77::8")?);
        scene.limiter.show(&["reload"])?;
    }
    assert!(scene.limiter.stop()?.success());
    Ok(())
}

/// A server with more addresses than the kernel's table holds sends no answers at all, and says so.
#[test]
fn too_many_addresses_silence_all_answers() -> Result<()> {
    let scene = Scene::new()?;
    let change = |what: &str| {
        let mut batch = String::new();
        for number in 0..1100 {
            let (high, low) = (number / 250, number % 250 + 1);
            writeln!(batch, "address {what} 10.99.{high}.{low}/32 dev lo")?;
        }
        scene.pair.server.ip_batch(&batch)
    };
    assert!(scene.is_answered("10.77.0.3")?);
    change("add")?;
    scene.wait("10.77.0.3", false)?;
    let reported = scene.limiter.show(&["status"])?;
    ensure!(
        reported.contains("NOTHING IS ANSWERED: the host has 1"),
        "{reported}"
    );
    scene
        .limiter
        .wait_for_log("nothing is answered: the host has 1")?;
    change("del")?;
    scene.wait("10.77.0.3", true)?;
    let reported = scene.limiter.show(&["status"])?;
    ensure!(!reported.contains("NOTHING IS ANSWERED"), "{reported}");
    assert!(scene.limiter.stop()?.success());
    Ok(())
}
