//! A pressure attack: a thousand busy sources among ten thousand quiet ones, all under one sieve.

use std::{
    net::{IpAddr, Ipv4Addr},
    time::Duration,
};

use anyhow::{Context as _, Result, ensure};
use testbed::{CLIENT_INTERFACE, Frame, Load, Pair, RawSender, RawSink};

use crate::{networks, start};

const BUSY: u32 = 1_000;
const QUIET: u32 = 10_000;

/// Packets a second of all busy sources: 40 of each.
const BUSY_PER_SECOND: u32 = 40_000;

/// Packets a second of all quiet sources: one of each in five seconds.
const QUIET_PER_SECOND: u32 = 2_000;

const ATTACK: Duration = Duration::from_secs(12);

/// The entry list holds 2 048 addresses: enough to know all busy sources when they send again, too
/// few for any quiet one. The lists below hold as many again.
const CONFIGURATION: &str = "
ip-rep:
  - name: main
    buckets: 9
    size: 11
    percentage: 90
    pressure: {packets-per-second: 20000}
";

#[test]
fn the_busy_lose_their_packets_and_the_quiet_do_not() -> Result<()> {
    let pair = Pair::new(&networks(&["10.77.0.2/24"])?, &networks(&["10.77.0.1/24"])?)?;
    let limiter = start(&pair, CONFIGURATION)?;
    let sink = RawSink::new(&pair.server, testbed::SERVER_INTERFACE)?;
    let (busy, quiet) = (sources(172 << 24, BUSY), sources(198 << 24, QUIET));

    let send = |sources: &[Ipv4Addr], per_second: u32| -> Result<u64> {
        let sender = RawSender::new(&pair.client, CLIENT_INTERFACE)?;
        let frames = frames(sources)?;
        let load = Load::steady(per_second.try_into()?, ATTACK);
        Ok(sender.send(load, &frames)?.packets)
    };
    let (busy_sent, quiet_sent) = std::thread::scope(|scope| {
        let quiet = scope.spawn(|| send(&quiet, QUIET_PER_SECOND));
        let busy = send(&busy, BUSY_PER_SECOND);
        let quiet = quiet.join().expect("the sender does not panic");
        Ok::<_, anyhow::Error>((busy?, quiet?))
    })?;
    let tally = sink.finish()?;
    let passed = |sources: &[Ipv4Addr]| -> u64 {
        let of = |source: &Ipv4Addr| tally.of(IpAddr::V4(*source)).packets;
        sources.iter().map(of).sum()
    };
    // In hundredths of a percent.
    let lost = |sent: u64, passed: u64| 10_000 * (sent - passed) / sent;
    let busy_lost = lost(busy_sent, passed(&busy));
    let quiet_lost = lost(quiet_sent, passed(&quiet));
    let status = limiter.status()?;
    ensure!(
        busy_lost >= 9_000 && quiet_lost <= 100,
        "of ten thousand packets, the busy lost {busy_lost} (of {busy_sent} sent) and the quiet \
         {quiet_lost} (of {quiet_sent}): {status:#}"
    );
    let dropped = status["reasons"]["iprep"].as_u64();
    let expected = busy_sent + quiet_sent - passed(&busy) - passed(&quiet);
    ensure!(
        dropped == Some(expected),
        "{expected} were lost: {status:#}"
    );
    Ok(())
}

fn sources(first: u32, count: u32) -> Vec<Ipv4Addr> {
    // All over a /8, as in a botnet.
    (0..count)
        .map(|number| Ipv4Addr::from(first + number * 1_663))
        .collect()
}

fn frames(sources: &[Ipv4Addr]) -> Result<Vec<Vec<u8>>> {
    let server = "10.77.0.1".parse().context("an address")?;
    let frame = |source: &Ipv4Addr| Frame::new((*source).into(), server).udp(4_000, 53, b"");
    sources.iter().map(frame).collect()
}
