//! Superframes (GSO), which carry many packets, in generic mode.

use std::{
    net::{SocketAddr, UdpSocket},
    path::Path,
};

use anyhow::{Result, ensure};
use nix::sys::socket::{setsockopt, sockopt::UdpGsoSegment};
use serde_json::Value;
use testbed::{Limiter, SERVER_INTERFACE, UdpSink};

use crate::{pair, wait};

const PROGRAM: &str = env!("CARGO_BIN_EXE_limiter");
const PORT: u16 = 7000;

/// The headers of a packet, in bytes: Ethernet, IPv4 and UDP.
const HEADERS: u64 = 42;

/// Superframes of so many packets, each with a payload of `size` bytes.
#[derive(Clone, Copy)]
struct Sent {
    superframes: u64,
    packets: u64,
    size: u16,
}

/// Sends superframes to a server behind a limit, and returns the counts of the limit, once the server has
/// got as many packets as passed.
fn send(limit: &str, sent: Sent) -> Result<Value> {
    let pair = pair()?;
    let configuration = format!("limits: {{Each: {{id: ipAddress, period: 1h, {limit}}}}}\n");
    let arguments = ["-i", SERVER_INTERFACE, "--mode", "generic"];
    let limiter = Limiter::start(Path::new(PROGRAM), &pair.server, &configuration, &arguments)?;
    let sink = UdpSink::new(&pair.server, PORT)?;
    let payload = vec![0; usize::from(sent.size) * usize::try_from(sent.packets)?];
    pair.client.enter(|| {
        let socket = UdpSocket::bind("10.77.0.2:0")?;
        setsockopt(&socket, UdpGsoSegment, &i32::from(sent.size))?;
        for _ in 0..sent.superframes {
            let written = socket.send_to(&payload, SocketAddr::new("10.77.0.1".parse()?, PORT))?;
            ensure!(written == payload.len());
        }
        Ok(())
    })?;
    let all = sent.superframes * sent.packets;
    let counts = || -> Result<Value> { Ok(limiter.status()?["limits"]["Each"].clone()) };
    let of = |counts: &Value, field: &str| counts[field].as_u64().unwrap_or(0);
    wait(|| {
        let counts = counts()?;
        Ok(of(&counts, "passed_packets") + of(&counts, "dropped_packets") == all)
    })?;
    let counts = counts()?;
    let passed = of(&counts, "passed_packets");
    wait(|| Ok(sink.so_far().of("10.77.0.2".parse()?).packets == passed))?;
    ensure!(limiter.stop()?.success());
    Ok(counts)
}

#[test]
fn each_packet_of_a_superframe_counts() -> Result<()> {
    let large = Sent {
        superframes: 3,
        packets: 45,
        size: 1000,
    };
    let counts = send("cost: packets, burst: 100, count: 1", large)?;
    assert_eq!(counts["passed_packets"], 2 * 45, "{counts}");
    assert_eq!(counts["dropped_packets"], 45, "{counts}");
    // The least payload that a sender can have in each.
    let small = Sent {
        superframes: 2,
        packets: 60,
        size: 1,
    };
    let counts = send("cost: packets, burst: 100, count: 1", small)?;
    assert_eq!(counts["passed_packets"], 60, "{counts}");
    assert_eq!(counts["dropped_packets"], 60, "{counts}");
    Ok(())
}

#[test]
fn the_headers_of_each_count_as_bytes() -> Result<()> {
    let large = Sent {
        superframes: 3,
        packets: 45,
        size: 1000,
    };
    let counts = send("cost: bytes, burst: 100000, count: 1", large)?;
    assert_eq!(
        counts["passed_bytes"],
        2 * 45 * (1000 + HEADERS),
        "{counts}"
    );
    assert_eq!(counts["dropped_packets"], 45, "{counts}");
    let small = Sent {
        superframes: 2,
        packets: 60,
        size: 1,
    };
    let counts = send("cost: bytes, burst: 3000, count: 1", small)?;
    assert_eq!(counts["passed_bytes"], 60 * (1 + HEADERS), "{counts}");
    Ok(())
}

/// Its packets could come one by one, and a full bucket would let the first of them pass: it cannot let a
/// part of the superframe pass, so it lets the whole pass, and owes the rest.
#[test]
fn a_superframe_above_the_burst_passes_a_full_bucket_which_owes_the_rest() -> Result<()> {
    let sent = Sent {
        superframes: 3,
        packets: 45,
        size: 1000,
    };
    for limit in [
        "cost: packets, burst: 20, count: 1",
        "cost: bytes, burst: 16000, count: 1",
    ] {
        let counts = send(limit, sent)?;
        assert_eq!(counts["passed_packets"], 45, "{counts}");
        assert_eq!(counts["dropped_packets"], 2 * 45, "{counts}");
    }
    // A window counts what passes in it, and can owe nothing.
    let counts = send("cost: packets, strategy: fixed-window, count: 20", sent)?;
    assert_eq!(counts["passed_packets"], 0, "{counts}");
    Ok(())
}
