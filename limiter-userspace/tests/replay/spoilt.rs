//! Damaged captures: cut short, in another format, or with truncated frames.

use anyhow::Result;
use testbed::{
    Frame,
    capture::{Format, PCAP, PCAPNG, Packet},
};

use crate::command::replay;

const CONFIG: &str = "limits: {BytesPerIPAddress: {burst: 3000, count: 1, period: 1h}}\n";

fn frame(payload: usize) -> Result<Vec<u8>> {
    Frame::new("10.0.0.2".parse()?, "10.0.0.1".parse()?).udp(1, 2, &vec![0; payload])
}

/// Runs a replay that must fail; returns the packets in its summary and its only line on stderr.
fn fails(capture: &[u8]) -> Result<(Option<u64>, String)> {
    let replayed = replay(CONFIG, capture, false, &["--json"])?;
    assert!(!replayed.success, "{}", replayed.stdout);
    assert_eq!(replayed.stderr.lines().count(), 1, "{}", replayed.stderr);
    let reported: serde_json::Value = serde_json::from_str(&replayed.stderr)?;
    let packets = replayed
        .lines()?
        .last()
        .and_then(|line| line["summary"]["packets"].as_u64());
    Ok((
        packets,
        reported["message"].as_str().unwrap_or_default().to_owned(),
    ))
}

#[test]
fn a_cut_capture_is_told_as_far_as_it_goes() -> Result<()> {
    let packets = vec![Packet::whole(0, frame(100)?); 3];
    for (format, inside) in [(PCAP, "packet"), (PCAPNG, "block")] {
        let whole = format.write(&packets);
        let cut = &whole[..whole.len() - 3];
        let expected = format!(
            "the capture is cut short: it ends at byte {}, inside a {inside}",
            cut.len()
        );
        let (read, error) = fails(cut)?;
        assert_eq!((read, error), (Some(2), expected), "{format:?}");
    }
    // Cut inside the third packet's header.
    let whole = PCAP.write(&packets);
    let (read, error) = fails(&whole[..whole.len() - packets[0].length - 8])?;
    assert_eq!(read, Some(2));
    assert!(error.ends_with("inside a packet header"), "{error}");
    Ok(())
}

#[test]
fn what_is_no_capture_is_refused() -> Result<()> {
    let foreign = "capture: not a capture: neither pcap nor pcapng";
    let check = |bytes: &[u8], expected: &str| -> Result<()> {
        assert_eq!(fails(bytes)?, (None, expected.to_owned()));
        Ok(())
    };
    check(b"", "capture: not a capture: the file is empty")?;
    check(b"\xd4", foreign)?;
    check(b"#!/bin/sh\necho no capture at all\n", foreign)?;
    check(b"\x0a\x0d\x0d\x0a\x1c\x00\x00\x00no order", foreign)
}

#[test]
fn other_link_types_are_refused() -> Result<()> {
    let packets = [Packet::whole(0, frame(1)?)];
    for (format, read) in [(PCAP, None), (PCAPNG, Some(0))] {
        let format = Format {
            link_type: 105,
            ..format
        };
        let expected = "the capture's link type is 105: only Ethernet (1), cooked (113, 276) and raw \
                        IP (101, 228, 229) can be read";
        let (found, error) = fails(&format.write(&packets))?;
        assert_eq!(found, read);
        assert!(error.ends_with(expected), "{error}");
    }
    Ok(())
}

#[test]
fn damaged_lengths_are_refused() -> Result<()> {
    let mut pcap = PCAP.write(&[Packet::whole(0, frame(1)?)]);
    pcap[24 + 8 + 3] = 0x7f;
    let (read, error) = fails(&pcap)?;
    assert_eq!(read, Some(0));
    assert!(
        error.contains("a packet is longer than any frame"),
        "{error}"
    );

    let mut pcapng = PCAPNG.write(&[Packet::whole(0, frame(1)?)]);
    let last = pcapng.len() - 4;
    pcapng[last] ^= 4;
    let (read, error) = fails(&pcapng)?;
    assert_eq!(read, Some(0));
    assert!(error.contains("before and after a block differ"), "{error}");
    Ok(())
}

#[test]
fn frames_without_their_end_count_in_full() -> Result<()> {
    let (first, second) = (frame(1_458)?, frame(1_457)?);
    assert_eq!(first.len(), 1_500);
    // Two frames cut after the headers, the third inside the Ethernet header.
    let packets = [
        Packet::whole(0, first).cut_to(42),
        Packet::whole(0, second.clone()).cut_to(60),
        Packet::whole(0, second.clone()).cut_to(20),
        Packet::whole(0, second).cut_to(7),
        Packet::whole(0, vec![0; 13]),
    ];
    let capture = PCAP.write(&packets);
    for engine in ["native", "kernel"] {
        let replayed = replay(CONFIG, &capture, false, &["--json", "--engine", engine])?;
        assert!(replayed.success, "{engine}: {}", replayed.stderr);
        let lines = replayed.lines()?;
        assert_eq!(lines[0]["remaining"], 1_500, "{engine}");
        assert_eq!(lines[1]["remaining"], 1, "{engine}");
        assert_eq!(lines[2]["reason"], "malformed_ipv4", "{engine}");
        assert_eq!(lines[2]["limit"], serde_json::Value::Null, "{engine}");
        assert_eq!(lines[3]["reason"], "malformed_ethernet", "{engine}");
        assert_eq!(lines[4]["reason"], "malformed_ethernet", "{engine}");
    }
    let plain = replay(CONFIG, &capture, false, &[])?;
    assert!(
        plain.stdout.contains("\n4 were truncated in the capture"),
        "{}",
        plain.stdout
    );
    Ok(())
}
