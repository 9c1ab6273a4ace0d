//! The link types of captures. All frames are converted to Ethernet, the only link type that the program sees.

use std::iter;

/// The length of an Ethernet header.
const ETHERNET: usize = 14;

const TYPE_IPV4: [u8; 2] = [0x08, 0x00];
const TYPE_IPV6: [u8; 2] = [0x86, 0xdd];
/// Reserved: assigned to no protocol.
const TYPE_NONE: [u8; 2] = [0xff, 0xff];

type Address = [u8; 6];

/// Stands for an address that the capture does not contain.
const UNKNOWN: Address = [0; 6];
/// Stands for the capturing host: cooked frames lack its address at one end.
const HOST: Address = [2, 0, 0, 0, 0, 1];
const BROADCAST: Address = [0xff; 6];
const MULTICAST: Address = [1, 0, 0x5e, 0, 0, 0];

/// A link type, by libpcap's registry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Link {
    Ethernet,
    /// An IP packet of either version, without a link header.
    Raw,
    Ipv4,
    Ipv6,
    /// Linux cooked frames, as of `tcpdump -i any`: the kernel's description of a packet of any link.
    Cooked,
    Cooked2,
}

impl Link {
    /// The link type with this number; `None`: unsupported.
    pub(super) const fn new(number: u32) -> Option<Self> {
        match number {
            1 => Some(Self::Ethernet),
            // Some systems wrote 12 and 14 in place of 101.
            12 | 14 | 101 => Some(Self::Raw),
            113 => Some(Self::Cooked),
            228 => Some(Self::Ipv4),
            229 => Some(Self::Ipv6),
            276 => Some(Self::Cooked2),
            _ => None,
        }
    }

    /// Converts a packet's captured bytes to Ethernet; returns its length on the wire. The capture gives that length as
    /// `original`, or 0 if its writer did not know it.
    pub(super) fn make_ethernet(self, data: &mut Vec<u8>, original: u32) -> usize {
        let original = original as usize;
        let Some((length, header)) = self.header(data) else {
            return data.len().max(original);
        };
        data.splice(..length.min(data.len()), header.into_iter().flatten());
        data.len().max((original + ETHERNET).saturating_sub(length))
    }

    /// The length of the link's own header, and the Ethernet header that replaces it, which is missing if the own
    /// header is cut; `None`: the link is Ethernet already.
    fn header(self, data: &[u8]) -> Option<(usize, Option<[u8; ETHERNET]>)> {
        let of_ip = |kind| Some((0, Some(ethernet(UNKNOWN, UNKNOWN, kind))));
        match self {
            Self::Ethernet => None,
            Self::Ipv4 => of_ip(TYPE_IPV4),
            Self::Ipv6 => of_ip(TYPE_IPV6),
            Self::Raw => of_ip(match data.first().map(|first| first >> 4) {
                None | Some(4) => TYPE_IPV4,
                Some(6) => TYPE_IPV6,
                Some(_) => TYPE_NONE,
            }),
            Self::Cooked => Some((16, cooked(data))),
            Self::Cooked2 => Some((20, cooked2(data))),
        }
    }
}

fn cooked(data: &[u8]) -> Option<[u8; ETHERNET]> {
    let header = data.first_chunk::<16>()?;
    let (address, kind) = (header[6..].first_chunk()?, header[14..].first_chunk()?);
    Some(of_way(header[1], header[5], *address, *kind))
}

fn cooked2(data: &[u8]) -> Option<[u8; ETHERNET]> {
    let header = data.first_chunk::<20>()?;
    let (address, kind) = (header[12..].first_chunk()?, header.first_chunk()?);
    Some(of_way(header[10], header[11], *address, *kind))
}

/// Makes the header of a frame that went in direction `way`, by Linux's numbers, from a source address of `length`
/// bytes.
fn of_way(way: u8, length: u8, address: Address, kind: [u8; 2]) -> [u8; ETHERNET] {
    let from = if length == 6 { address } else { UNKNOWN };
    match way {
        0 => ethernet(HOST, from, kind),
        1 => ethernet(BROADCAST, from, kind),
        2 => ethernet(MULTICAST, from, kind),
        4 => ethernet(UNKNOWN, HOST, kind),
        _ => ethernet(UNKNOWN, from, kind),
    }
}

fn ethernet(to: Address, from: Address, kind: [u8; 2]) -> [u8; ETHERNET] {
    let mut header = [0; ETHERNET];
    let bytes = to.into_iter().chain(from).chain(kind);
    for (byte, value) in iter::zip(&mut header, bytes) {
        *byte = value;
    }
    header
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(number: u32, data: &[u8], original: u32, expected: &[u8], length: usize) {
        let mut data = data.to_vec();
        let link = Link::new(number).expect("a link type");
        assert_eq!(link.make_ethernet(&mut data, original), length, "{number}");
        assert_eq!(data, expected, "{number}");
    }

    #[test]
    fn frames_of_every_link_become_ethernet() {
        let frame = |to: Address, from: Address, kind, rest: &[u8]| {
            [&ethernet(to, from, kind), rest].concat()
        };
        let (v4, v6) = ([0x45, 7], [0x60, 7]);
        check(1, &v4, 9, &v4, 9);
        for number in [12, 14, 101] {
            let expected = |kind, rest: &[u8]| frame(UNKNOWN, UNKNOWN, kind, rest);
            check(number, &v4, 60, &expected(TYPE_IPV4, &v4), 74);
            check(number, &v6, 60, &expected(TYPE_IPV6, &v6), 74);
            check(number, &[0x10], 60, &expected(TYPE_NONE, &[0x10]), 74);
            check(number, &[], 60, &expected(TYPE_IPV4, &[]), 74);
            // A length unknown to the writer.
            check(number, &v4, 0, &expected(TYPE_IPV4, &v4), 16);
        }
        check(228, &v6, 60, &frame(UNKNOWN, UNKNOWN, TYPE_IPV4, &v6), 74);
        check(229, &v4, 60, &frame(UNKNOWN, UNKNOWN, TYPE_IPV6, &v4), 74);

        let sender = [2, 0, 0, 0, 0, 9];
        for (way, to, from) in [
            (0, HOST, sender),
            (1, BROADCAST, sender),
            (2, MULTICAST, sender),
            (3, UNKNOWN, sender),
            (4, UNKNOWN, HOST),
        ] {
            let expected = frame(to, from, TYPE_IPV4, &v4);
            let cooked = [0, way, 0, 1, 0, 6, 2, 0, 0, 0, 0, 9, 0, 0, 8, 0];
            check(113, &[&cooked[..], &v4].concat(), 76, &expected, 74);
            let cooked = [8, 0, 0, 0, 0, 0, 0, 3, 0, 1, way, 6, 2, 0, 0, 0, 0, 9, 0, 0];
            check(276, &[&cooked[..], &v4].concat(), 80, &expected, 74);
        }
        // A tunnel's packet has no address, and a short snapshot may even lack the link header.
        let cooked = [0, 0, 2, 8, 0, 0, 9, 9, 9, 9, 9, 9, 9, 9, 0x86, 0xdd, 0x60];
        check(
            113,
            &cooked,
            76,
            &frame(HOST, UNKNOWN, TYPE_IPV6, &[0x60]),
            74,
        );
        check(113, &cooked[..15], 76, &[], 74);
        check(276, &cooked, 80, &[], 74);
        assert_eq!(Link::new(105), None);
    }
}
