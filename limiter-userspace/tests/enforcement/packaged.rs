//! The packaged configuration does not limit the host's own downloads.

use std::{
    io::{Read as _, Write as _},
    net::{IpAddr, SocketAddr, TcpListener, TcpStream},
    thread,
};

use anyhow::{Context as _, Result, ensure};
use limiter_common::reason::{Action, Reason};
use serde_json::Value;
use testbed::{CLIENT_INTERFACE, Frame, Limiter, Pair, RawSender};

use crate::{PATIENCE, pair, start, wait};

const CONFIGURATION: &str = include_str!("../../../configs/limiter.yaml");

/// Twice the burst of the limit of bytes.
const DOWNLOAD: usize = 40_000_000;

#[test]
fn what_the_host_fetches_is_not_limited_and_its_services_are() -> Result<()> {
    let pair = pair()?;
    let limiter = start(&pair, CONFIGURATION)?;
    for peer in ["10.77.0.2", "fd77:1:1::1"] {
        let before = pair.received()?;
        ensure!(download(&pair, peer.parse()?)? == DOWNLOAD);
        let arrived = pair.received()? - before;
        // Far more than any limit admits at once, or in the time that it took.
        ensure!(arrived > 600, "{arrived} packets from {peer}");
    }
    let none = Vec::<(&str, u64)>::new();
    ensure!(dropped(&limiter)? == none, "{:?}", dropped(&limiter)?);

    // A service of the host is limited: these exceed the burst and a second's packets.
    let frame = Frame::new("10.77.0.3".parse()?, "10.77.0.1".parse()?).udp(40_000, 53, b"?")?;
    let before = pair.received()?;
    RawSender::new(&pair.client, CLIENT_INTERFACE)?.send_frames(&vec![frame; 2_000])?;
    wait(|| Ok(pair.received()? >= before + 2_000)).context("packets are lost")?;
    let dropped = dropped(&limiter)?;
    let [("over_limit", packets)] = dropped[..] else {
        anyhow::bail!("{dropped:?}");
    };
    ensure!(packets > 0);
    let explanation = limiter.explain("10.77.0.3")?;
    ensure!(explanation["last_drop"]["limit"] == "ServicePacketsPerIPAddress");
    Ok(())
}

/// Downloads from a peer's web server; returns the number of bytes.
fn download(pair: &Pair, peer: IpAddr) -> Result<usize> {
    let server = pair.client.enter(|| Ok(TcpListener::bind((peer, 80))?))?;
    let serving = thread::spawn(move || -> Result<()> {
        let (mut connection, _) = server.accept()?;
        connection.set_write_timeout(Some(PATIENCE))?;
        let block = vec![b'x'; 100_000];
        for _ in 0..DOWNLOAD / block.len() {
            connection.write_all(&block)?;
        }
        Ok(())
    });
    let got = pair.server.enter(|| {
        let address = SocketAddr::from((peer, 80));
        let mut connection = TcpStream::connect_timeout(&address, PATIENCE)?;
        connection.set_read_timeout(Some(PATIENCE))?;
        let mut got = Vec::with_capacity(DOWNLOAD);
        connection.read_to_end(&mut got)?;
        Ok(got.len())
    })?;
    serving.join().expect("the peer does not panic")?;
    Ok(got)
}

/// Returns how many packets were dropped, by reason.
fn dropped(limiter: &Limiter) -> Result<Vec<(&'static str, u64)>> {
    let status: Value = limiter.status()?;
    let mut dropped = Vec::new();
    for reason in Reason::ALL {
        let packets = status["reasons"][reason.name()].as_u64();
        let packets = packets.with_context(|| format!("{} is counted", reason.name()))?;
        if packets > 0 && reason.action(Action::Drop) == Action::Drop {
            dropped.push((reason.name(), packets));
        }
    }
    Ok(dropped)
}
