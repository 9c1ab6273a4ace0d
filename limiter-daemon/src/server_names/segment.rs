//! Parses and checks a TCP segment as the kernel's program reports it.

use std::net::IpAddr;

use limiter_common::{connection::Ends, packet::PROTOCOL_TCP};

const LEAST_HEADER: usize = 20;

/// A segment that the network stack accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TcpSegment<'s> {
    /// The sequence number of the first byte of the payload.
    pub(super) sequence: u32,
    /// The payload, or its first bytes.
    pub(super) payload: &'s [u8],
}

impl<'s> TcpSegment<'s> {
    /// Parses a segment of a connection with these ends, `length` bytes long including its header (RFC 9293, 3.1).
    /// `None`: the network stack drops it, since its checksum is wrong or its header broken.
    ///
    /// Between machines on one host, the sender leaves the checksum to a network card that does not exist. The field
    /// then has the sum of the pseudo-header, which the network stack accepts.
    pub(super) fn new(ends: &Ends, length: u32, segment: &'s [u8]) -> Option<Self> {
        let reported = usize::try_from(length).ok()?.min(segment.len());
        let segment = &segment[..reported];
        let header = usize::from(*segment.get(12)? >> 4) * 4;
        let pseudo = pseudo_header(ends, length);
        let checksum = u16::from_be_bytes([*segment.get(16)?, *segment.get(17)?]);
        let is_whole = segment.len() == length as usize;
        let is_right = is_whole && folded(pseudo + sum(segment)) == u16::MAX;
        if header < LEAST_HEADER || !is_right && checksum != folded(pseudo) {
            return None;
        }
        Some(Self {
            sequence: u32::from_be_bytes(*segment[4..].first_chunk()?),
            payload: segment.get(header..)?,
        })
    }
}

/// Returns the sum of the checksummed fields outside the segment.
fn pseudo_header(ends: &Ends, length: u32) -> u64 {
    let addresses = [ends.peer(), ends.own()].map(|address| match IpAddr::from(address) {
        IpAddr::V4(address) => sum(&address.octets()),
        IpAddr::V6(address) => sum(&address.octets()),
    });
    let [peer, own] = addresses;
    peer + own + u64::from(PROTOCOL_TCP) + u64::from(length)
}

/// Returns the sum of the words of 16 bits in network byte order (RFC 1071).
fn sum(bytes: &[u8]) -> u64 {
    let words = bytes.chunks(2).map(|word| match word {
        [high, low] => u16::from_be_bytes([*high, *low]),
        _ => u16::from(word[0]) << 8,
    });
    words.map(u64::from).sum()
}

/// Folds a sum to 16 bits in ones' complement.
#[expect(clippy::cast_possible_truncation, reason = "it is folded to 16 bits")]
const fn folded(mut sum: u64) -> u16 {
    while sum >> 16 != 0 {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

#[cfg(test)]
mod tests {
    use testbed::Frame;

    use super::*;

    /// Returns a segment without options, and its ends.
    fn segment([client, server]: [&str; 2], payload: &[u8]) -> (Ends, Vec<u8>) {
        let [client, server]: [IpAddr; 2] = [client, server].map(|one| one.parse().unwrap());
        let frame = Frame::new(client, server);
        let frame = frame.tcp_data(40_000, 443, (7, 1), payload).unwrap();
        let segment = frame[frame.len() - 20 - payload.len()..].to_vec();
        let ends = Ends::new(&client.into(), 40_000, &server.into(), 443);
        (ends, segment)
    }

    const ENDS: [[&str; 2]; 2] = [
        ["192.0.2.1", "198.51.100.2"],
        ["2001:db8::1", "2001:db8::2"],
    ];

    #[test]
    fn only_segments_with_a_right_checksum_are_taken() {
        for (of, payload) in ENDS.into_iter().zip([&b"even"[..], b"odd"]) {
            let (ends, mut bytes) = segment(of, payload);
            let length = u32::try_from(bytes.len()).unwrap();
            let right = TcpSegment {
                sequence: 7,
                payload,
            };
            assert_eq!(TcpSegment::new(&ends, length, &bytes), Some(right));
            *bytes.last_mut().unwrap() ^= 1;
            assert_eq!(TcpSegment::new(&ends, length, &bytes), None);
            // The checksum as left by a sender without a network card.
            let pseudo = folded(pseudo_header(&ends, length)).to_be_bytes();
            bytes[16..18].copy_from_slice(&pseudo);
            assert!(TcpSegment::new(&ends, length, &bytes).is_some());
        }
    }

    #[test]
    fn what_is_cut_short_is_no_segment() {
        let (ends, bytes) = segment(ENDS[0], b"hello");
        for length in 0..bytes.len() {
            let reported = u32::try_from(bytes.len()).unwrap();
            assert_eq!(TcpSegment::new(&ends, reported, &bytes[..length]), None);
            let length = u32::try_from(length).unwrap();
            assert_eq!(TcpSegment::new(&ends, length, &bytes), None);
        }
        assert_eq!(TcpSegment::new(&ends, u32::MAX, &[0xff; 60]), None);
    }
}
