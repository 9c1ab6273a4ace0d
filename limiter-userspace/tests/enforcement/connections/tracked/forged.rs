//! Forged segments against connection tracking, and the effort that a successful forgery takes.

use std::{
    io::{ErrorKind, Read as _},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Result, ensure};
use socket2::Socket;
use testbed::{CLIENT_INTERFACE, Frame, Limiter, RawSender};

use super::{
    super::{CLIENT, LIMIT, PORT, counted},
    SERVER, Scene, assert_tracked, tracked,
};
use crate::{
    PACE,
    forwarding::{nft, set},
};

/// An unused address, so that no host answers the server with a reset.
const NOBODY: &str = "10.77.0.99";

/// How often the forged segments are sent.
const ROUNDS: usize = 5;

/// No count may change in this time, in which the daemon polls twice.
const LOOKS: Duration = Duration::from_millis(2_500);

/// Fails if the count differs from this number at any time during two polls.
fn assert_stays(limiter: &Limiter, expected: u64) -> Result<()> {
    let begun = Instant::now();
    while begun.elapsed() < LOOKS {
        ensure!(counted(limiter)? == expected, "a count has changed");
        thread::sleep(PACE);
    }
    Ok(())
}

/// Forged SYNs and mid-stream ACKs, with a client's address or an unused one, take no slot and give none back, even if
/// the kernel tracks connections mid-stream.
#[test]
fn forged_segments_change_no_count() -> Result<()> {
    for loose in ["1", "0"] {
        let scene = Scene::new()?;
        let pair = &scene.forwarding.pair;
        set(&pair.server, "netfilter/nf_conntrack_tcp_loose", loose)?;
        let limiter = scene.start(&tracked("ipAddress"))?;
        assert_tracked(&limiter, 0)?;
        let sender = RawSender::new(&pair.client, CLIENT_INTERFACE)?;
        let mut frames = Vec::new();
        for source in [CLIENT, NOBODY] {
            let frame = Frame::new(source.parse()?, SERVER.parse()?);
            for port in 1000..1200 {
                frames.push(frame.tcp_syn(port, PORT, 1)?);
                frames.push(frame.tcp_ack(port, PORT, 2, 3)?);
                // ACKs without any handshake, and to a port without a listener.
                frames.push(frame.tcp_ack(port + 1000, PORT, 2, 3)?);
                frames.push(frame.tcp_ack(port, PORT + 1, 2, 3)?);
            }
        }
        let flood = || -> Result<()> {
            for _ in 0..ROUNDS {
                sender.send_frames(&frames)?;
            }
            Ok(())
        };
        flood()?;
        assert_stays(&limiter, 0)?;
        let mut open = scene.fill(CLIENT)?;
        assert_tracked(&limiter, LIMIT as u64)?;
        flood()?;
        assert_stays(&limiter, LIMIT as u64)?;
        scene.assert_full(CLIENT)?;
        drop(open.pop());
        open.push(scene.assert_room(CLIENT)?);
        assert_tracked(&limiter, LIMIT as u64)?;
    }
    Ok(())
}

/// How far an ACK's number may be from the number that connection tracking expects.
const WINDOW: u32 = 60_000;

/// Drops the server's resets.
const SILENT: &str = "\
table inet silent {
  chain output {
    type filter hook output priority filter
    tcp flags & rst == rst drop
  }
}
";

/// A forger who cannot see the replies has to send about 70 000 last ACKs until one handshake is believed. The server's
/// reset then ends it; without the reset it stays.
#[test]
fn a_guessed_last_ack_is_reset() -> Result<()> {
    let frame = Frame::new(NOBODY.parse()?, SERVER.parse()?);
    let guesses = (0..=u32::MAX / WINDOW).map(|guess| guess * WINDOW);
    let guesses = guesses.map(|guess| frame.tcp_ack(4000, PORT, 2, guess));
    let guesses: Vec<_> = guesses.collect::<Result<_>>()?;
    for is_silent in [false, true] {
        let scene = Scene::new()?;
        let pair = &scene.forwarding.pair;
        if is_silent {
            nft(&scene.forwarding.behind, SILENT)?;
        }
        let limiter = scene.start(&tracked("ipAddress"))?;
        assert_tracked(&limiter, 0)?;
        let sender = RawSender::new(&pair.client, CLIENT_INTERFACE)?;
        sender.send_frames(&[frame.tcp_syn(4000, PORT, 1)?])?;
        let mut most = 0;
        for guesses in guesses.chunks(guesses.len() / 20) {
            sender.send_frames(guesses)?;
            most = most.max(counted(&limiter)?);
        }
        println!(
            "{} guesses, silent: {is_silent}; at most {most} were counted",
            guesses.len()
        );
        assert_tracked(&limiter, u64::from(is_silent))?;
    }
    Ok(())
}

/// Drops packets at their last hop before they are tracked.
const NO_FURTHER: &str = "\
table inet near {
  chain prerouting {
    type filter hook prerouting priority raw
    ip ttl 1 drop
    ip6 hoplimit 1 drop
  }
}
";

/// A client's reset that expires behind the host makes the host uncount a connection that the server still has, unless
/// such packets are dropped before they are tracked.
#[test]
fn an_end_that_the_server_does_not_see() -> Result<()> {
    for is_dropped in [false, true] {
        let scene = Scene::new()?;
        if is_dropped {
            nft(&scene.forwarding.pair.server, NO_FURTHER)?;
        }
        let limiter = scene.start(&tracked("ipAddress"))?;
        let (client, mut serving) = scene.open(CLIENT)?;
        assert_tracked(&limiter, 1)?;
        let client = Socket::from(client);
        client.set_ttl_v4(1)?;
        client.set_linger(Some(Duration::ZERO))?;
        drop(client);
        if !is_dropped {
            assert_tracked(&limiter, 0)?;
        }
        serving.set_read_timeout(Some(Duration::from_secs(3)))?;
        let read = serving.read(&mut [0]).map_err(|error| error.kind());
        ensure!(
            read == Err(ErrorKind::WouldBlock),
            "the server sees {read:?}"
        );
        assert_tracked(&limiter, u64::from(is_dropped))?;
    }
    Ok(())
}
