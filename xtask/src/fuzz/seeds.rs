//! Seeds: good inputs to start from, which libFuzzer would have to guess byte by byte.

use std::{fs, net::IpAddr};

use anyhow::{Context as _, Result};
use testbed::{
    Frame, Tag,
    capture::{Container, Format, PCAP, Packet},
};

use super::paths;

/// Writes the generated seeds. The targets `config` and `feed` use the files in `configs/`, and `decision`
/// finds its own inputs.
pub(super) fn write() -> Result<()> {
    let frames = frames()?;
    let captures = captures(&frames);
    for (target, seeds) in [("frame", frames), ("capture", captures)] {
        let directory = paths::made("seeds", target)?;
        for (number, seed) in seeds.iter().enumerate() {
            let path = directory.join(number.to_string());
            fs::write(&path, seed).with_context(|| format!("cannot write {}", path.display()))?;
        }
    }
    Ok(())
}

/// Builds frames of both families, under up to two tags.
fn frames() -> Result<Vec<Vec<u8>>> {
    let v4: (IpAddr, IpAddr) = ([192, 0, 2, 1].into(), [192, 0, 2, 2].into());
    let v6: (IpAddr, IpAddr) = ("2001:db8::1".parse()?, "2001:db8::2".parse()?);
    let mut frames = Vec::new();
    for (source, destination) in [v4, v6] {
        let untagged = Frame::new(source, destination);
        let tagged = untagged.clone().tagged(Tag::Service(7));
        let twice = tagged.clone().tagged(Tag::Customer(9));
        for frame in [untagged, tagged, twice] {
            frames.push(frame.udp(1, 2, b"payload")?);
            frames.push(frame.tcp_syn(1, 2, 3)?);
        }
    }
    Ok(frames)
}

/// Writes the frames in every capture format.
fn captures(frames: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let packets: Vec<_> = (1_700_000_000_000_000_000..)
        .zip(frames)
        .map(|(time_ns, frame)| Packet::whole(time_ns, frame.clone()).cut_to(60))
        .collect();
    let mut captures = Vec::new();
    for container in [Container::Pcap, Container::Pcapng] {
        for (big_endian, nanoseconds) in [(false, false), (true, true)] {
            let format = Format {
                container,
                big_endian,
                nanoseconds,
                ..PCAP
            };
            captures.push(format.write(&packets));
        }
    }
    captures
}
