//! A TCP segment as the kernel's program tells it.

use std::net::IpAddr;

use limiter_common::{connection::Ends, packet::PROTOCOL_TCP};

const LEAST_HEADER: usize = 20;

/// A segment that the network stack takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TcpSegment<'s> {
    /// The sequence number of the first byte of the payload.
    pub(super) sequence: u32,
    /// The payload, or its first bytes.
    pub(super) payload: &'s [u8],
}

impl<'s> TcpSegment<'s> {
    /// Takes one of a connection with these ends, which has `length` bytes with its header (RFC 9293, 3.1).
    /// `None`: the network stack drops it, since its checksum is wrong or its header broken.
    ///
    /// Between machines on one host the sender leaves the checksum to a card that there is not: then there
    /// is the sum of the pseudo-header, and the network stack takes that.
    pub(super) fn new(ends: &Ends, length: u32, segment: &'s [u8]) -> Option<Self> {
        let told = usize::try_from(length).ok()?.min(segment.len());
        let segment = &segment[..told];
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

/// Returns the sum of what a segment's checksum covers besides the segment.
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

/// Returns a sum in ones' complement.
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

    /// Returns a segment, and its ends.
    fn segment(client: &str, server: &str, payload: &[u8]) -> (Ends, Vec<u8>) {
        let [client, server]: [IpAddr; 2] = [client, server].map(|one| one.parse().unwrap());
        let frame = Frame::new(client, server);
        let frame = frame.tcp_with(40_000, 443, 7, payload).unwrap();
        let header = if client.is_ipv4() { 14 + 20 } else { 14 + 40 };
        let ends = Ends::new(&client.into(), 40_000, &server.into(), 443);
        (ends, frame[header..].to_vec())
    }
}
