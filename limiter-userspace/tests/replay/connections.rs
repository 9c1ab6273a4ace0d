//! Limits on connections: a replay follows the handshakes of a capture.

use anyhow::{Context as _, Result};
use serde_json::json;
use testbed::{
    Frame,
    capture::{PCAP, Packet},
};

use crate::command::replay;

const CLIENT: &str = "192.0.2.1";
const SERVER: &str = "198.51.100.1";
const SECOND: u64 = 1_000_000_000;

const FIN: u8 = 0x01;
const SYN: u8 = 0x02;
const RST: u8 = 0x04;
const ACK: u8 = 0x10;

fn configuration(more: &str) -> String {
    format!(
        "limits:\n  Web: {{id: ipAddress, cost: connections, limit: 1, match: {{protocol: tcp, \
         destination-port: 443}}{more}}}\n"
    )
}

/// Returns a TCP segment between this port of the client and port 443 of the server.
fn segment(from_client: bool, port: u16, flags: u8, numbers: [u32; 2]) -> Result<Vec<u8>> {
    const TRANSPORT: usize = 14 + 20;
    let [sequence, acknowledged] = numbers;
    let mut frame = if from_client {
        Frame::new(CLIENT.parse()?, SERVER.parse()?).tcp_syn(port, 443, sequence)?
    } else {
        Frame::new(SERVER.parse()?, CLIENT.parse()?).tcp_syn(443, port, sequence)?
    };
    frame[TRANSPORT + 8..TRANSPORT + 12].copy_from_slice(&acknowledged.to_be_bytes());
    frame[TRANSPORT + 13] = flags;
    Ok(frame)
}

/// Returns the packets of a client's handshake from this port, beginning at this time.
fn handshake(port: u16, at: u64) -> Result<Vec<Packet>> {
    Ok(vec![
        Packet::whole(at, segment(true, port, SYN, [100, 0])?),
        Packet::whole(at + 1, segment(false, port, SYN | ACK, [500, 101])?),
        Packet::whole(at + 2, segment(true, port, ACK, [101, 501])?),
    ])
}

#[test]
fn one_too_many_is_refused_until_another_ends() -> Result<()> {
    let reset = segment(true, 2000, RST, [101, 0])?;
    let capture = PCAP.write(
        &[
            handshake(2000, 0)?,
            handshake(2001, SECOND)?,
            vec![Packet::whole(2 * SECOND, reset)],
            handshake(2002, 3 * SECOND)?,
        ]
        .concat(),
    );
    let replayed = replay(&configuration(""), &capture, false, &["--json"])?;
    assert!(replayed.success, "{}", replayed.stderr);
    let lines = replayed.lines()?;
    let reasons: Vec<_> = lines
        .iter()
        .filter_map(|line| line["reason"].as_str())
        .collect();
    assert_eq!(reasons[0], "within_limits");
    assert_eq!(reasons[3], "too_many_connections");
    assert_eq!(reasons[7], "within_limits");
    assert_eq!(
        (&lines[3]["limit"], &lines[3]["remaining"]),
        (&json!("Web"), &json!(0))
    );
    let summary = &lines.last().context("no line")?["summary"];
    let expected = json!({"opened": 2, "most_open": 1, "open_at_end": 1});
    assert_eq!(summary["connections"], expected, "{summary}");
    assert_eq!(summary["by_limit"]["Web"]["dropped"], 1, "{summary}");
    let replayed = replay(&configuration(""), &capture, false, &[])?;
    let reported = "connections are judged from this capture's handshakes alone, an approximation: 2 \
                connections opened, 1 open at once at most, 1 at the end; earlier ones are missing";
    assert!(replayed.stdout.contains(reported), "{}", replayed.stdout);
    Ok(())
}

/// The second client's SYN takes a ticket; the client's next SYN passes once there is room.
#[test]
fn clients_wait_in_line() -> Result<()> {
    let again = |at| anyhow::Ok(Packet::whole(at, segment(true, 2001, SYN, [100, 0])?));
    let ends = |from_client, at| {
        let fin = segment(from_client, 2000, FIN | ACK, [101, 501])?;
        anyhow::Ok(Packet::whole(at, fin))
    };
    let capture = PCAP.write(
        &[
            handshake(2000, 0)?,
            vec![again(SECOND)?, again(2 * SECOND)?],
            vec![ends(true, 3 * SECOND)?, ends(false, 3 * SECOND)?],
            // Another client tries to take the free slot before the waiting one.
            handshake(2002, 3 * SECOND + 1)?,
            handshake(2001, 4 * SECOND)?,
        ]
        .concat(),
    );
    let replayed = replay(
        &configuration(", queue: {size: 5}"),
        &capture,
        false,
        &["--json"],
    )?;
    assert!(replayed.success, "{}", replayed.stderr);
    let lines = replayed.lines()?;
    let passed: Vec<_> = lines.iter().map(|line| line["verdict"] == "pass").collect();
    assert_eq!(passed[3..5], [false; 2]);
    assert_eq!((passed[7], passed[10]), (false, true));
    Ok(())
}

#[test]
fn the_kernel_counts_only_its_own() -> Result<()> {
    let capture = PCAP.write(&handshake(2000, 0)?);
    let replayed = replay(&configuration(""), &capture, false, &["--engine", "kernel"])?;
    assert!(!replayed.success);
    let reported = "limit Web has cost connections, and the kernel counts those of its own network stack, \
                not those of a capture: replay with `--engine native`";
    assert!(replayed.stderr.contains(reported), "{}", replayed.stderr);
    Ok(())
}

/// A flood of resets is dropped; segments of the capture's connections pass. Segments of a connection opened before the
/// capture belong to no known connection.
#[test]
fn states_follow_the_handshakes_of_the_capture() -> Result<()> {
    let text = "limits: {Stray: {id: total, cost: packets, match: {state: none, destination-port: 443}, \
                burst: 1, count: 1, period: 1h}}\n";
    let stray = (3000..3004).map(|port| segment(true, port, RST, [7, 0]));
    let stray = stray.collect::<Result<Vec<_>>>()?;
    let data = segment(true, 2000, ACK, [101, 501])?;
    let mut packets = handshake(2000, 0)?;
    let later = stray.into_iter().chain([data]);
    packets.extend(
        (SECOND..)
            .zip(later)
            .map(|(at, frame)| Packet::whole(at, frame)),
    );
    let capture = PCAP.write(&packets);
    for engine in ["native", "kernel"] {
        let replayed = replay(text, &capture, false, &["--json", "--engine", engine])?;
        assert!(replayed.success, "{}", replayed.stderr);
        let lines = replayed.lines()?;
        let reasons: Vec<_> = lines
            .iter()
            .filter_map(|line| line["reason"].as_str())
            .collect();
        let held = ["over_limit"; 3];
        let expected = [
            &["unlimited"; 3][..],
            &["within_limits"],
            &held,
            &["unlimited"],
        ];
        assert_eq!(reasons, expected.concat(), "{engine}");
    }
    Ok(())
}
