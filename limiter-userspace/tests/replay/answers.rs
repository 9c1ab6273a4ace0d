//! What would be sent back.

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
        // From the server's port: a reset that acknowledges the SYN.
        assert_eq!(answer[34..38], [1, 0xbb, 0x10, 0xe1]);
        assert_eq!(answer[38..48], [0, 0, 0, 0, 0, 0, 0, 8, 0x50, 0x14]);
        assert_eq!(answer.len(), 54);
    }
    Ok(())
}
