//! Superframes (GSO), which carry many packets, in generic mode.

use std::{
    fs,
    io::{Read as _, Write as _},
    net::{SocketAddr, TcpListener, TcpStream, UdpSocket},
    path::Path,
    thread,
};

use anyhow::{Context as _, Result, ensure};
use nix::sys::socket::{setsockopt, sockopt::UdpGsoSegment};
use serde_json::Value;
use testbed::{CLIENT_INTERFACE, Frame, Limiter, Namespace, SERVER_INTERFACE, Tap, UdpSink};

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
    // A window counts the packets that pass in it, and cannot have debts.
    let counts = send("cost: packets, strategy: fixed-window, count: 20", sent)?;
    assert_eq!(counts["passed_packets"], 0, "{counts}");
    Ok(())
}

/// Superframes of a connection reach a bridge whole, whether the sender left them so (TSO) or the card
/// below merged them (GRO): each segment that the client sent counts.
#[test]
fn each_segment_of_a_connection_counts_on_a_bridge() -> Result<()> {
    for merged_by in [CLIENT_INTERFACE, SERVER_INTERFACE] {
        let pair = pair()?;
        if merged_by == SERVER_INTERFACE {
            offload(
                &pair.client,
                &[CLIENT_INTERFACE, "tso", "off", "gso", "off"],
            )?;
            offload(&pair.server, &[SERVER_INTERFACE, "gro", "on"])?;
        }
        pair.server.ip_batch(&format!(
            "link add br0 type bridge forward_delay 0\n\
             addr del 10.77.0.1/24 dev {SERVER_INTERFACE}\n\
             link set {SERVER_INTERFACE} master br0\n\
             link set br0 up\n\
             addr add 10.77.0.1/24 dev br0\n\
             route replace 10.77.0.2 dev br0\n\
             neighbour replace 10.77.0.2 lladdr 02:00:00:00:00:01 dev br0 nud permanent\n"
        ))?;
        let limit = "id: ipAddress, cost: packets, burst: 1000000, count: 1, period: 1h";
        let configuration = format!("limits: {{Each: {{{limit}, match: {{protocol: tcp}}}}}}\n");
        let (program, arguments) = (Path::new(PROGRAM), ["-i", "br0"]);
        let limiter = Limiter::start(program, &pair.server, &configuration, &arguments)?;
        upload(&pair.client, &pair.server)?;
        let counted = || -> Result<Option<u64>> {
            Ok(limiter.status()?["limits"]["Each"]["passed_packets"].as_u64())
        };
        wait(|| Ok(counted()? == Some(sent_segments(&pair.client)?)))?;
        let frames = pair.server.enter(|| {
            let devices = fs::read_to_string("/proc/thread-self/net/dev")?;
            let line = devices
                .lines()
                .find_map(|line| line.trim().strip_prefix("br0:"));
            let packets = line.and_then(|line| line.split_whitespace().nth(1));
            Ok(packets.context("no br0")?.parse::<u64>()?)
        })?;
        let counted = counted()?.unwrap_or(0);
        ensure!(
            frames * 2 < counted,
            "{frames} frames, {counted} packets: few were merged"
        );
        ensure!(limiter.stop()?.success());
    }
    Ok(())
}

/// Sends some megabytes from one namespace to the other.
fn upload(client: &Namespace, server: &Namespace) -> Result<()> {
    const BYTES: usize = 4 << 20;
    let listener = server.enter(|| Ok(TcpListener::bind(("10.77.0.1", PORT))?))?;
    let received = thread::spawn(move || -> Result<usize> {
        let (mut stream, _) = listener.accept()?;
        Ok(stream.read_to_end(&mut Vec::new())?)
    });
    let mut stream = client.enter(|| Ok(TcpStream::connect(("10.77.0.1", PORT))?))?;
    stream.write_all(&vec![0; BYTES])?;
    drop(stream);
    let received = received.join().ok().context("the server panicked")??;
    ensure!(received == BYTES);
    Ok(())
}

/// Returns the segments that a namespace sent, each one that a card would.
fn sent_segments(namespace: &Namespace) -> Result<u64> {
    let counters = namespace.enter(|| Ok(fs::read_to_string("/proc/thread-self/net/snmp")?))?;
    let mut lines = counters
        .lines()
        .filter_map(|line| line.strip_prefix("Tcp: "));
    let (names, values) = lines.next().zip(lines.next()).context("no counters")?;
    let mut counters = names.split(' ').zip(values.split(' '));
    let mut of = |name| {
        let found = counters.find(|(found, _)| *found == name);
        found
            .context("no such counter")?
            .1
            .parse::<u64>()
            .context("not a number")
    };
    Ok(of("OutSegs")? + of("RetransSegs")?)
}

fn offload(namespace: &Namespace, arguments: &[&str]) -> Result<()> {
    let mut ethtool = namespace.command("ethtool");
    let status = ethtool.arg("-K").args(arguments).status()?;
    ensure!(status.success(), "ethtool fails: {arguments:?}");
    Ok(())
}

/// Superframes of a virtual machine reach a native program as well, without notes: they are estimated.
#[test]
fn the_packets_of_a_virtual_machines_superframe_are_estimated() -> Result<()> {
    let namespace = Namespace::new()?;
    let mut tap = Tap::merging(&namespace, "tap0")?;
    let configuration =
        "limits: {Each: {id: ipAddress, cost: packets, burst: 25, count: 1, period: 1h}}\n";
    let arguments = ["-i", "tap0", "--mode", "native"];
    let limiter = Limiter::start(Path::new(PROGRAM), &namespace, configuration, &arguments)?;
    let (segments, size) = (10, 1460);
    let frame = Frame::new("10.77.0.2".parse()?, "10.77.0.1".parse()?);
    let frame = frame.tcp_data(1024, PORT, (1, 1), &vec![0; segments * usize::from(size)])?;
    for _ in 0..3 {
        tap.send_superframe(&frame, size)?;
    }
    let status = limiter.status()?;
    let each = &status["limits"]["Each"];
    assert_eq!(each["passed_packets"], 20, "{each}");
    assert_eq!(each["dropped_packets"], 10, "{each}");
    ensure!(limiter.stop()?.success());
    Ok(())
}
