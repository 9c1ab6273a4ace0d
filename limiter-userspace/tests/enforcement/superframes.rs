//! Superframes (GSO), each with many packets, in generic mode.

use std::{
    fs,
    io::{Read as _, Write as _},
    net::{SocketAddr, TcpListener, TcpStream, UdpSocket},
    os::unix::fs::PermissionsExt as _,
    path::Path,
    thread,
};

use anyhow::{Context as _, Result, ensure};
use nix::sys::socket::{setsockopt, sockopt::UdpGsoSegment};
use serde_json::Value;
use testbed::{CLIENT_INTERFACE, Frame, Limiter, Namespace, SERVER_INTERFACE, Tap, UdpSink, Wire};

use crate::{pair, wait};

const PROGRAM: &str = env!("CARGO_BIN_EXE_limiter");
const PORT: u16 = 7000;

/// The headers of a packet, in bytes: Ethernet, IPv4 and UDP.
const HEADERS: u64 = 42;

/// Superframes of this many packets, each with a payload of `size` bytes.
#[derive(Clone, Copy)]
struct Sent {
    superframes: u64,
    packets: u64,
    size: u16,
}

/// Sends superframes to a server behind a limit; returns the limit's counts once all passed packets have arrived.
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
    // The smallest payload of a packet.
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

/// Sent one by one, the first of its packets would pass a full bucket. The limiter cannot pass a part of a superframe,
/// so it passes the whole, and the bucket owes the rest.
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
    // A window only counts packets within it, and cannot owe any.
    let counts = send("cost: packets, strategy: fixed-window, count: 20", sent)?;
    assert_eq!(counts["passed_packets"], 0, "{counts}");
    Ok(())
}

/// A limit that drops superframes whole is named before it does, but not where there are none, and not a limit on
/// packets that the kernel does not merge.
#[test]
fn a_limit_that_drops_superframes_whole_is_told() -> Result<()> {
    const TOLD: &str = "merged from packets of a connection, which the limit drops whole";
    const SMALL: &str = "limits: {Each: {id: ipAddress, cost: packets, strategy: fixed-window, count: 20, period: 1h}}\n";
    let pair = pair()?;
    let generic = ["-i", SERVER_INTERFACE, "--mode", "generic"];
    let limiter = Limiter::start(Path::new(PROGRAM), &pair.server, SMALL, &generic)?;
    let is_told = || Ok(limiter.show(&["status"])?.contains(TOLD));
    let is_healthy = || {
        let checked = limiter.command(&["status", "--check"]).output()?;
        anyhow::Ok(checked.status.success())
    };
    wait(is_told)?;
    limiter.wait_for_log(TOLD)?;
    assert!(!is_healthy()?);
    for large in [
        SMALL.replace("count: 20", "count: 64"),
        SMALL.replace("count: 20", "count: 20, match: {protocol: udp}"),
        SMALL.replace("strategy: fixed-window", "burst: 20"),
    ] {
        limiter.configure(&large)?;
        limiter.show(&["reload"])?;
        wait(|| Ok(!is_told()?)).with_context(|| large.clone())?;
        assert!(is_healthy()?, "{large}");
    }
    let key = limiter.configuration().with_file_name("fleet.key");
    fs::write(&key, "0".repeat(64))?;
    fs::set_permissions(&key, fs::Permissions::from_mode(0o600))?;
    // Each of three nodes always has a sixtieth: the reserve keeps it from owing.
    let shared = |burst: u32| {
        format!(
            "buckets: {{scope: host}}\n\
             fleet: {{store: \"redis://127.0.0.1\", name: web, nodes: 3, key-file: {}}}\n\
             limits: {{Each: {{id: ipAddress, cost: packets, burst: {burst}, count: 100, period: 1s, \
             reserve: {{familiar: 10%, unknown: 50%}}, scope: fleet}}}}\n",
            key.display()
        )
    };
    for (mode, policy, is_expected) in [
        ("generic", SMALL, true),
        ("native", SMALL, false),
        ("generic", &shared(500), true),
        ("generic", &shared(4000), false),
    ] {
        limiter.configure(&format!(
            "interfaces: {SERVER_INTERFACE}\nmode: {mode}\n{policy}"
        ))?;
        let mut check = pair.server.command(PROGRAM);
        let check = check.args(["check", "-c"]).arg(limiter.configuration());
        let reported = String::from_utf8(check.output()?.stderr)?;
        assert_eq!(
            reported.contains(TOLD),
            is_expected,
            "{mode}: {policy}: {reported}"
        );
        ensure!(!reported.contains("error"), "{reported}");
    }
    ensure!(limiter.stop()?.success());
    Ok(())
}

/// Superframes of a connection reach a bridge whole, left by the sender (TSO) or merged by the card below (GRO): each
/// of the client's segments counts.
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
        let segments = count_upload(&pair.client, &pair.server, &["-i", "br0"])?;
        let frames = pair.server.enter(|| {
            let devices = fs::read_to_string("/proc/thread-self/net/dev")?;
            let line = devices
                .lines()
                .find_map(|line| line.trim().strip_prefix("br0:"));
            let packets = line.and_then(|line| line.split_whitespace().nth(1));
            Ok(packets.context("no br0")?.parse::<u64>()?)
        })?;
        ensure!(
            frames * 2 < segments,
            "{frames} frames, {segments} segments: few were merged"
        );
    }
    Ok(())
}

/// Limits a server with these arguments while a client sends to it; returns the client's segments once the limit has
/// counted each.
fn count_upload(client: &Namespace, server: &Namespace, arguments: &[&str]) -> Result<u64> {
    const LIMIT: &str = "limits: {Each: {id: ipAddress, cost: packets, burst: 1000000, count: 1, period: 1h, \
                         match: {protocol: tcp}}}\n";
    let limiter = Limiter::start(Path::new(PROGRAM), server, LIMIT, arguments)?;
    upload(client, server)?;
    let counted = || -> Result<Option<u64>> {
        Ok(limiter.status()?["limits"]["Each"]["passed_packets"].as_u64())
    };
    wait(|| Ok(counted()? == Some(sent_segments(client)?)))?;
    ensure!(limiter.stop()?.success());
    sent_segments(client)
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

/// Returns how many segments a namespace sent, counted as a card would send them.
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

/// Superframes of a virtual machine reach a native program without metadata, so their packet counts are estimates.
#[test]
fn the_packets_of_a_virtual_machines_superframe_are_estimated() -> Result<()> {
    send_from_machine("native", 10, 1460)
}

/// In generic mode the kernel has the size of each packet, also of packets that do not fill the MTU.
#[test]
fn the_packets_of_a_virtual_machines_superframe_are_counted_in_generic_mode() -> Result<()> {
    send_from_machine("generic", 10, 1460)?;
    send_from_machine("generic", 10, 300)
}

/// A virtual machine leaves its segments to the host's card, and they have options. In native mode they are known to
/// fill the MTU.
#[test]
fn each_segment_of_a_virtual_machines_connection_counts() -> Result<()> {
    for mode in ["generic", "native"] {
        let (server, machine) = (Namespace::new()?, Namespace::new()?);
        let tap = |namespace: &Namespace, address: &str| -> Result<Tap> {
            let tap = Tap::merging(namespace, "tap0")?;
            namespace.ip(&["addr", "add", address, "dev", "tap0"])?;
            Ok(tap)
        };
        let ends = [
            tap(&server, "10.77.0.1/24")?,
            tap(&machine, "10.77.0.2/24")?,
        ];
        let _wire = Wire::between(ends)?;
        count_upload(&machine, &server, &["-i", "tap0", "--mode", mode]).context(mode)?;
    }
    Ok(())
}

/// Has a virtual machine send three superframes, of which two pass.
fn send_from_machine(mode: &str, segments: usize, size: u16) -> Result<()> {
    let namespace = Namespace::new()?;
    let mut tap = Tap::merging(&namespace, "tap0")?;
    let configuration =
        "limits: {Each: {id: ipAddress, cost: packets, burst: 25, count: 1, period: 1h}}\n";
    let arguments = ["-i", "tap0", "--mode", mode];
    let limiter = Limiter::start(Path::new(PROGRAM), &namespace, configuration, &arguments)?;
    let frame = Frame::new("10.77.0.2".parse()?, "10.77.0.1".parse()?);
    let frame = frame.tcp_data(1024, PORT, (1, 1), &vec![0; segments * usize::from(size)])?;
    for _ in 0..3 {
        tap.send_superframe(&frame, size)?;
    }
    let status = limiter.status()?;
    let each = &status["limits"]["Each"];
    // A superframe passes whole: the bucket of 25 holds the packets of two.
    assert_eq!(each["passed_packets"], 20, "{each}");
    assert_eq!(each["dropped_packets"], 10, "{each}");
    ensure!(limiter.stop()?.success());
    Ok(())
}
