//! Packets that limits would send back.

use anyhow::{Context as _, Result, ensure};
use serde_json::json;
use testbed::{
    Frame,
    capture::{PCAP, Packet},
};

use crate::command::replay;

const CONFIG: &str =
    "limits:\n  All: {id: total, cost: packets, burst: 1, count: 1, period: 1h, deny: reset}\n";

/// The file's header, and a packet's.
const FILE_HEADER: usize = 24;
const PACKET_HEADER: usize = 16;

/// A DNS query of `example.com` for its address, with an additional record.
const QUERY: &[u8] = b"\x12\x34\x01\0\0\x01\0\0\0\0\0\x01\x07example\x03com\0\0\x01\0\x01\
                       \0\0\x29\x04\xd0\0\0\0\0\0\0";

/// The zeros at the query's end, and the offset of UDP's checksum in an IPv4 packet.
const ZEROS: usize = 6;
const CHECKSUM: std::ops::Range<usize> = 40..42;

/// An answer is built from the whole packet, so a truncated packet gets none.
#[test]
fn what_a_capture_cut_short_gets_no_answer() -> Result<()> {
    const ANSWERED: &str = "\
limits:
  Queries: {id: total, cost: packets, burst: 1, count: 1, period: 1h, match: {protocol: udp}, deny: truncate}
  Connections: {id: total, cost: packets, burst: 1, count: 1, period: 1h, match: {protocol: tcp}, deny: reset}
";
    let frame = Frame::new([192, 0, 2, 7].into(), [198, 51, 100, 1].into());
    let query = frame.udp(4321, 53, QUERY)?;
    // Without a UDP checksum, the missing bytes could be anything.
    let mut unchecked = query.clone();
    unchecked[CHECKSUM].fill(0);
    let whole = |frame: &[u8]| Packet::whole(1_000_000_000, frame.to_vec());
    let cut = |frame: &[u8], by: usize| whole(frame).cut_to(frame.len() - by);
    // A segment with all-zero data.
    let v6 = Frame::new("2001:db8::7".parse()?, "2001:db8::1".parse()?);
    let segment = v6.tcp_fast_open(4321, 443, 7, &[0; 100])?;
    let packets = [
        whole(&query),
        cut(&query, ZEROS),
        whole(&unchecked),
        cut(&unchecked, ZEROS),
        cut(&unchecked, 11),
        whole(&segment),
        whole(&segment),
        cut(&segment, 100),
        cut(&segment, 1),
    ];
    let mut outputs = Vec::new();
    for engine in ["native", "kernel"] {
        let file = tempfile::NamedTempFile::new()?;
        let path = file.path().to_str().context("a path in UTF-8")?;
        let arguments = ["--json", "--engine", engine, "--answers", path];
        let replayed = replay(ANSWERED, &PCAP.write(&packets), false, &arguments)?;
        ensure!(replayed.success, "{}", replayed.stderr);
        let lines = replayed.lines()?;
        let answered = json!({"truncate": 1, "reset": 1});
        assert_eq!(lines[packets.len()]["summary"]["answered"], answered);
        for (at, expected) in [(2, json!("truncate")), (6, json!("reset"))] {
            assert_eq!(lines[at]["answer"], expected, "packet {at}, {engine}");
        }
        outputs.push((lines[..packets.len()].to_vec(), std::fs::read(path)?));
    }
    assert_eq!(outputs[0], outputs[1]);
    Ok(())
}

#[test]
fn resets_are_told_and_written() -> Result<()> {
    let frame = Frame::new([192, 0, 2, 7].into(), [198, 51, 100, 1].into());
    let syn = frame.tcp_syn(4321, 443, 7)?;
    let frames = [
        (1_000_000_000, syn.clone()),
        (2_000_001_000, syn),
        (3_000_000_000, frame.udp(9, 53, b"x")?),
    ];
    let capture = PCAP.write(&frames.map(|(time_ns, frame)| Packet::whole(time_ns, frame)));
    for engine in ["native", "kernel"] {
        let file = tempfile::NamedTempFile::new()?;
        let path = file.path().to_str().context("a path in UTF-8")?;
        let arguments = ["--json", "--engine", engine, "--answers", path];
        let replayed = replay(CONFIG, &capture, false, &arguments)?;
        ensure!(replayed.success, "{}", replayed.stderr);
        let lines = replayed.lines()?;
        let answers = [0, 1, 2].map(|at| lines[at].get("answer").cloned());
        assert_eq!(answers, [None, Some(json!("reset")), None]);
        assert_eq!(lines[3]["summary"]["answered"], json!({"reset": 1}));
        let written = std::fs::read(path)?;
        let (_, packet) = written.split_at(FILE_HEADER);
        let (header, answer) = packet.split_at(PACKET_HEADER);
        assert_eq!(header, [2u32, 1_000, 54, 54].map(u32::to_le_bytes).concat());
        // A reset from the server's port that acknowledges the SYN.
        assert_eq!(answer[34..38], [1, 0xbb, 0x10, 0xe1]);
        assert_eq!(answer[38..48], [0, 0, 0, 0, 0, 0, 0, 8, 0x50, 0x14]);
        assert_eq!(answer.len(), 54);
    }
    Ok(())
}
