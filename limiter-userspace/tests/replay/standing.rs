//! Standing on a capture: handshakes are read from its frames, visits and retries from its times.

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use testbed::{
    Frame,
    capture::{PCAP, Packet},
};

use crate::command::{Replayed, replay};

/// Unknown sources may use half of the burst; no token comes back during the test.
const CONFIG: &str = "\
limits:
  All: {id: total, cost: packets, burst: 10, count: 1, period: 1h, reserve: {retried: 1, unknown: 5},
    match: {destination-port: 80}}
standing: {fresh-for: 1m}
";

const SECOND: u64 = 1_000_000_000;

const CLIENT: [u8; 4] = [10, 0, 0, 1];
const SERVER: [u8; 4] = [10, 9, 9, 9];

const SYN: u8 = 0x02;
const ACK: u8 = 0x10;

/// A TCP segment between port 4000 of the client and port 80 of the server.
fn segment(from_client: bool, flags: u8, numbers: [u32; 2]) -> Result<Vec<u8>> {
    const TRANSPORT: usize = 14 + 20;
    let [sequence, acknowledged] = numbers;
    let mut frame = if from_client {
        Frame::new(CLIENT.into(), SERVER.into()).tcp_syn(4000, 80, sequence)?
    } else {
        Frame::new(SERVER.into(), CLIENT.into()).tcp_syn(80, 4000, sequence)?
    };
    frame[TRANSPORT + 8..TRANSPORT + 12].copy_from_slice(&acknowledged.to_be_bytes());
    frame[TRANSPORT + 13] = flags;
    Ok(frame)
}

/// A handshake; two minutes later five strangers, the first retries after a second, and then the
/// client returns.
fn capture(has_reply: bool) -> Result<Vec<u8>> {
    let mut packets = vec![Packet::whole(0, segment(true, SYN, [7, 0])?)];
    if has_reply {
        packets.push(Packet::whole(1, segment(false, SYN | ACK, [900, 8])?));
    }
    packets.push(Packet::whole(2, segment(true, ACK, [8, 901])?));
    let query = |at: u64, source: [u8; 4]| {
        let frame = Frame::new(source.into(), SERVER.into()).udp(1, 80, b"x")?;
        anyhow::Ok(Packet::whole(at, frame))
    };
    for host in 1..=5 {
        packets.push(query(120 * SECOND, [10, 1, 0, host])?);
    }
    packets.push(query(121 * SECOND, [10, 1, 0, 5])?);
    packets.push(query(121 * SECOND, [10, 1, 0, 4])?);
    packets.push(query(122 * SECOND, CLIENT)?);
    Ok(PCAP.write(&packets))
}

fn summary(replayed: &Replayed) -> Result<Value> {
    ensure!(replayed.success, "{}", replayed.stderr);
    let lines = replayed.lines()?;
    Ok(lines.last().context("a summary")?["summary"].clone())
}

#[test]
fn standing_is_judged_from_the_capture() -> Result<()> {
    let capture = capture(true)?;
    let native = replay(CONFIG, &capture, false, &["--json"])?;
    let reported = summary(&native)?;
    let counts = |passed: u64, dropped: u64| json!({"passed": passed, "dropped": dropped});
    // The SYN, the ACK and three strangers leave five tokens. Both sources that retry pass, because
    // a retry after a refusal raises their standing.
    let expected = json!({
        "proven": counts(1, 0),
        "familiar": counts(0, 0),
        "fresh": counts(0, 0),
        "retried": counts(2, 0),
        "unknown": counts(5, 2),
    });
    // No limit counts the server's own reply, so its standing is not looked up.
    ensure!(reported["by_standing"] == expected, "{reported:#}");
    let known_by = json!({
        "assumed_prefixes": 0,
        "handshakes": 1,
        "handshakes_not_completed": 0,
        "handshakes_without_answer": 0,
    });
    ensure!(reported["known_by"] == known_by, "{reported:#}");

    let kernel = replay(CONFIG, &capture, false, &["--json", "--engine", "kernel"])?;
    ensure!(kernel.success, "{}", kernel.stderr);
    ensure!(kernel.stdout == native.stdout, "{}", kernel.stdout);

    let text = replay(CONFIG, &capture, false, &[])?.stdout;
    let row = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
    let rows: Vec<_> = text.lines().map(row).collect();
    ensure!(rows.contains(&"retried 2 86 0 0".to_owned()), "{text}");
    let said = "standing is judged from this capture alone: no source was known before; 1 handshake \
                completed";
    ensure!(text.contains(said), "{text}");
    ensure!(!text.contains("lacks"), "{text}");
    ensure!(!text.contains("prove no source"), "{text}");
    Ok(())
}

/// A flood of SYNs: no client completes the handshake after the server's SYN-ACK.
#[test]
fn handshakes_that_are_not_completed_prove_nobody() -> Result<()> {
    let mut packets = Vec::new();
    for host in 1..=4 {
        let syn = Frame::new([10, 2, 0, host].into(), SERVER.into()).tcp_syn(4000, 80, 1)?;
        packets.push(Packet::whole(0, syn));
    }
    let capture = PCAP.write(&packets);
    let reported = summary(&replay(CONFIG, &capture, false, &["--json"])?)?;
    ensure!(reported["known_by"]["handshakes"] == 0, "{reported:#}");
    ensure!(
        reported["known_by"]["handshakes_not_completed"] == 4,
        "{reported:#}"
    );
    let text = replay(CONFIG, &capture, false, &[])?.stdout;
    let said = "of the handshakes that clients began, 4 prove no source: ";
    ensure!(text.contains(said), "{text}");
    Ok(())
}

#[test]
fn a_capture_without_replies_says_what_it_assumes() -> Result<()> {
    let replayed = replay(CONFIG, &capture(false)?, false, &["--json"])?;
    let reported = summary(&replayed)?;
    ensure!(
        reported["by_standing"]["proven"]["passed"] == 1,
        "{reported:#}"
    );
    ensure!(
        reported["known_by"]["handshakes_without_answer"] == 1,
        "{reported:#}"
    );
    let text = replay(CONFIG, &capture(false)?, false, &[])?.stdout;
    let said = "the capture lacks the servers' replies to 1 of the completed ones";
    ensure!(text.contains(said), "{text}");
    Ok(())
}

#[test]
fn sources_that_are_assumed_to_be_known_are_proven() -> Result<()> {
    let file = tempfile::NamedTempFile::new()?;
    std::fs::write(file.path(), "# our resolvers\n10.1.0.4/31\n")?;
    let path = file.path().to_str().context("the path is not UTF-8")?;
    for engine in ["native", "kernel"] {
        let arguments = ["--json", "--assume-known", path, "--engine", engine];
        let replayed = replay(CONFIG, &capture(true)?, false, &arguments)?;
        let reported = summary(&replayed)?;
        let proven = json!({"passed": 5, "dropped": 0});
        ensure!(reported["by_standing"]["proven"] == proven, "{reported:#}");
        ensure!(
            reported["known_by"]["assumed_prefixes"] == 1,
            "{reported:#}"
        );
    }
    Ok(())
}
