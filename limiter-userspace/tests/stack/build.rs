//! Builds frames and packets byte by byte, including malformed ones.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use testbed::{CLIENT_MAC, SERVER_MAC};

pub(crate) const IPV4: u16 = 0x0800;
pub(crate) const IPV6: u16 = 0x86dd;
pub(crate) const SNAP: [u8; 6] = [0xaa, 0xaa, 3, 0, 0, 0];

pub(crate) const IN_IPV4: u8 = 4;
pub(crate) const TCP: u8 = 6;
pub(crate) const UDP: u8 = 17;
pub(crate) const IN_IPV6: u8 = 41;
pub(crate) const ROUTING: u8 = 43;
pub(crate) const FRAGMENT: u8 = 44;
pub(crate) const AUTHENTICATION: u8 = 51;
pub(crate) const NO_NEXT: u8 = 59;
pub(crate) const OPTIONS: u8 = 60;
pub(crate) const HOP_BY_HOP: u8 = 0;

const TTL: u8 = 64;

/// A VLAN tag: its ethertype and its VID.
pub(crate) type Tag = (u16, u16);

/// Builds a frame for the server's interface: the ethertype follows the tags.
pub(crate) fn ethernet(tags: &[Tag], ether_type: u16, payload: &[u8]) -> Vec<u8> {
    let mut frame = [SERVER_MAC, CLIENT_MAC].concat();
    for (kind, vid) in tags {
        frame.extend([kind.to_be_bytes(), vid.to_be_bytes()].concat());
    }
    frame.extend(ether_type.to_be_bytes());
    frame.extend(payload);
    frame
}

/// Builds the frame of an IP packet, by the version in its header.
pub(crate) fn frame(packet: &[u8]) -> Vec<u8> {
    tagged(&[], packet)
}

/// Builds the same frame, behind tags.
pub(crate) fn tagged(tags: &[Tag], packet: &[u8]) -> Vec<u8> {
    let ether_type = if packet[0] >> 4 == 4 { IPV4 } else { IPV6 };
    ethernet(tags, ether_type, packet)
}

/// The source and destination of a packet, both of one family.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Path {
    pub(crate) source: IpAddr,
    pub(crate) destination: IpAddr,
}

impl Path {
    /// Builds a packet without options or extension headers.
    pub(crate) fn packet(self, protocol: u8, payload: &[u8]) -> Vec<u8> {
        match (self.source, self.destination) {
            (IpAddr::V4(_), IpAddr::V4(_)) => V4::of(self, protocol).packet(payload),
            (IpAddr::V6(source), IpAddr::V6(destination)) => {
                v6(source, destination, protocol, payload)
            }
            _ => panic!("{self:?} has two families"),
        }
    }

    /// Builds a UDP datagram, with its checksum.
    pub(crate) fn udp(self, ports: (u16, u16), data: &[u8]) -> Vec<u8> {
        let length = u16::try_from(8 + data.len()).expect("a short datagram");
        let mut datagram: Vec<u8> = [ports.0, ports.1, length, 0].map(u16::to_be_bytes).concat();
        datagram.extend(data);
        self.with_checksum(UDP, datagram, 6)
    }

    /// Builds a TCP segment with these flags and no data, with its checksum.
    pub(crate) fn tcp(self, ports: (u16, u16), flags: u8) -> Vec<u8> {
        let mut segment = [ports.0, ports.1, 0, 1, 0, 0]
            .map(u16::to_be_bytes)
            .concat();
        segment.extend([0x50, flags, 0x20, 0, 0, 0, 0, 0]);
        self.with_checksum(TCP, segment, 16)
    }

    /// Stores a payload's checksum, which covers the addresses, at `offset`.
    fn with_checksum(self, protocol: u8, mut payload: Vec<u8>, offset: usize) -> Vec<u8> {
        let length = u32::try_from(payload.len()).expect("a short payload");
        let mut summed = match (self.source, self.destination) {
            (IpAddr::V4(source), IpAddr::V4(to)) => [source.octets(), to.octets()].concat(),
            (IpAddr::V6(source), IpAddr::V6(to)) => [source.octets(), to.octets()].concat(),
            _ => panic!("{self:?} has two families"),
        };
        summed.extend(length.to_be_bytes());
        summed.extend([0, 0, 0, protocol]);
        summed.extend(&payload);
        payload[offset..offset + 2].copy_from_slice(&checksum(&summed));
        payload
    }
}

/// An IPv4 packet.
#[derive(Clone, Debug)]
pub(crate) struct V4 {
    pub(crate) source: Ipv4Addr,
    pub(crate) destination: Ipv4Addr,
    pub(crate) protocol: u8,
    pub(crate) id: u16,
    /// Flags and fragment offset.
    pub(crate) fragment: u16,
    /// Padded to whole words.
    pub(crate) options: Vec<u8>,
}

impl V4 {
    pub(crate) fn of(path: Path, protocol: u8) -> Self {
        let (IpAddr::V4(source), IpAddr::V4(destination)) = (path.source, path.destination) else {
            panic!("{path:?} is not IPv4");
        };
        Self {
            source,
            destination,
            protocol,
            id: 0,
            fragment: 0,
            options: Vec::new(),
        }
    }

    pub(crate) fn packet(&self, payload: &[u8]) -> Vec<u8> {
        let words = 5 + u8::try_from(self.options.len().div_ceil(4)).expect("few options");
        let length = usize::from(words) * 4 + payload.len();
        let length = u16::try_from(length).expect("a short packet");
        let mut header = vec![0x40 | words, 0];
        header.extend(
            [length, self.id, self.fragment]
                .map(u16::to_be_bytes)
                .concat(),
        );
        header.extend([TTL, self.protocol, 0, 0]);
        header.extend([self.source.octets(), self.destination.octets()].concat());
        header.extend(&self.options);
        header.resize(usize::from(words) * 4, 0);
        let checksum = checksum(&header);
        header[10..12].copy_from_slice(&checksum);
        [&header, payload].concat()
    }
}

/// Builds an IPv6 packet; its payload begins with the header `next`.
pub(crate) fn v6(source: Ipv6Addr, destination: Ipv6Addr, next: u8, payload: &[u8]) -> Vec<u8> {
    let length = u16::try_from(payload.len()).expect("a short packet");
    let mut packet = vec![0x60, 0, 0, 0];
    packet.extend(length.to_be_bytes());
    packet.extend([next, TTL]);
    packet.extend([source.octets(), destination.octets()].concat());
    packet.extend(payload);
    packet
}

/// Builds an extension header of eight bytes: the next header, and its own six bytes.
pub(crate) const fn extension(next: u8, body: [u8; 6]) -> [u8; 8] {
    [
        next, 0, body[0], body[1], body[2], body[3], body[4], body[5],
    ]
}

/// Padding alone, for the hop-by-hop and the destination options header.
pub(crate) const PADDING: [u8; 6] = [1, 4, 0, 0, 0, 0];

/// Builds IPv6's fragment header; `offset` is in bytes.
pub(crate) fn fragment(next: u8, offset: u16, more: bool, id: u32) -> Vec<u8> {
    assert!(offset.is_multiple_of(8), "fragments begin at whole units");
    let mut header = vec![next, 0];
    header.extend((offset | u16::from(more)).to_be_bytes());
    header.extend(id.to_be_bytes());
    header
}

/// Returns the internet checksum (RFC 1071).
fn checksum(bytes: &[u8]) -> [u8; 2] {
    let sum: u32 = bytes
        .chunks(2)
        .map(|pair| {
            u32::from(u16::from_be_bytes([
                pair[0],
                pair.get(1).copied().unwrap_or(0),
            ]))
        })
        .sum();
    let folded = (sum >> 16) + (sum & 0xffff);
    let folded = (folded >> 16) + (folded & 0xffff);
    (!u16::try_from(folded).expect("folded twice")).to_be_bytes()
}
