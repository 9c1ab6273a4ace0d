//! Every capture format gives the same replay.

use std::io::Write as _;

use anyhow::Result;
use flate2::{Compression, write::GzEncoder};
use ruzstd::encoding::{CompressionLevel, compress_to_vec};
use testbed::{
    Frame,
    capture::{Container, Format, PCAP, Packet},
};

use crate::command::replay;

const CONFIG: &str = "limits: {PacketsPerIPAddress: {burst: 2, count: 1, period: 1s}}\n";

fn packets() -> Result<Vec<Packet>> {
    let frame = Frame::new("2001:db8::7".parse()?, "2001:db8::1".parse()?).udp(1, 2, b"odd")?;
    let start = 1_700_000_000_123_456_000;
    // A capture's clock may go back.
    let times = [0, 1_000, 999_000, 2_000_000_000, 1_500_000_000, 3_000_000];
    let at = |time: u64| Packet::whole(start + time, frame.clone());
    Ok(times.into_iter().map(at).collect())
}

#[test]
fn all_formats_are_read_alike() -> Result<()> {
    let packets = packets()?;
    let mut first: Option<String> = None;
    for container in [Container::Pcap, Container::Pcapng] {
        for big_endian in [false, true] {
            for nanoseconds in [false, true] {
                let format = Format {
                    container,
                    big_endian,
                    nanoseconds,
                    ..PCAP
                };
                for through_stdin in [false, true] {
                    let capture = format.write(&packets);
                    let replayed = replay(CONFIG, &capture, through_stdin, &["--json"])?;
                    assert!(replayed.success, "{format:?}: {}", replayed.stderr);
                    let first = first.get_or_insert_with(|| replayed.stdout.clone());
                    assert_eq!(&replayed.stdout, first, "{format:?}");
                }
            }
        }
    }
    let first = first.unwrap_or_default();
    let lines: Vec<&str> = first.lines().collect();
    assert_eq!(lines.len(), packets.len() + 1);
    assert!(lines[4].contains(r#""t_ns":1500000000,"#), "{}", lines[4]);
    assert!(lines[5].contains(r#""verdict":"drop""#), "{}", lines[5]);
    Ok(())
}

/// Captures of `tcpdump -i any` and of tunnels: their frames lack the Ethernet header, but get the same verdicts.
#[test]
fn captures_of_other_links_are_read_alike() -> Result<()> {
    const ETHERNET: usize = 14;
    const COOKED: [u8; 16] = [0, 0, 0, 1, 0, 6, 2, 0, 0, 0, 0, 9, 0, 0, 0x86, 0xdd];
    const COOKED_2: [u8; 20] = [
        0x86, 0xdd, 0, 0, 0, 0, 0, 2, 0, 1, 0, 6, 2, 0, 0, 0, 0, 9, 0, 0,
    ];
    let packets = packets()?;
    let config = "limits: {BytesPerIPAddress: {burst: 2000, count: 1, period: 1h}}\n";
    let expected = replay(config, &PCAP.write(&packets), false, &["--json"])?.stdout;
    for (link_type, header) in [(101, &[][..]), (229, &[]), (113, &COOKED), (276, &COOKED_2)] {
        let packets = packets.iter().map(|packet| {
            let data = [header, &packet.data[ETHERNET..]].concat();
            Packet::whole(packet.time_ns, data)
        });
        let packets: Vec<_> = packets.collect();
        for container in [Container::Pcap, Container::Pcapng] {
            let format = Format {
                container,
                link_type,
                ..PCAP
            };
            let replayed = replay(config, &format.write(&packets), false, &["--json"])?;
            assert_eq!(replayed.stdout, expected, "{format:?}: {}", replayed.stderr);
        }
    }
    Ok(())
}

#[test]
fn compressed_captures_are_read_alike() -> Result<()> {
    let capture = PCAP.write(&packets()?);
    let plain = replay(CONFIG, &capture, false, &["--json"])?.stdout;
    let mut gzip = GzEncoder::new(Vec::new(), Compression::default());
    gzip.write_all(&capture)?;
    let zstd = compress_to_vec(&capture[..], CompressionLevel::Fastest);
    for compressed in [gzip.finish()?, zstd] {
        for through_stdin in [false, true] {
            let replayed = replay(CONFIG, &compressed, through_stdin, &["--json"])?;
            assert!(replayed.success, "{}", replayed.stderr);
            assert_eq!(replayed.stdout, plain);
        }
        // A truncated file is replayed as far as it goes, or is reported as no capture.
        let cut = &compressed[..compressed.len() - 6];
        let replayed = replay(CONFIG, cut, false, &["--json"])?;
        assert!(!replayed.success);
        assert!(replayed.stderr.contains("capture"), "{}", replayed.stderr);
    }
    Ok(())
}

#[test]
fn an_empty_capture_has_no_packets() -> Result<()> {
    let replayed = replay(CONFIG, &PCAP.write(&[]), false, &["--json"])?;
    assert!(replayed.success, "{}", replayed.stderr);
    assert!(replayed.stdout.contains(r#""packets":0"#));
    Ok(())
}
