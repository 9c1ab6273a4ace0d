//! Parses a frame's bytes into plain facts.

mod ethernet;
mod facts;
mod frame;
mod ipv4;
mod ipv6;
mod kind;
mod link;
mod name_match;
mod payload;
mod segment;
pub mod superframe;
mod tcp;
mod tcp_state;
mod transport;

#[cfg(not(target_arch = "bpf"))]
use core::ops::Range;

#[cfg(not(target_arch = "bpf"))]
pub use self::frame::BytesFrame;
use self::{ethernet::Network, payload::Payload};
pub use self::{
    facts::{Datagram, Facts, Transport},
    frame::Frame,
    kind::PacketKind,
    link::Link,
    name_match::NameMatch,
    segment::{Segment, TCP_HEADER, segment},
    tcp::{FLAG_ACK, FLAG_RST, FLAG_SYN, FLAG_URG},
    tcp_state::TcpState,
    transport::{PROTOCOL_ICMP, PROTOCOL_ICMPV6, PROTOCOL_TCP, PROTOCOL_UDP, PROTOCOLS_WITH_PORTS},
};
use crate::{address::Family, reason::Reason};

/// The headers of a frame: all the input of a decision.
pub trait Headers {
    /// Finds the facts of an IP packet; `facts` must be [`Facts::NONE`] before.
    ///
    /// # Errors
    ///
    /// The reason if the frame is not IP or is malformed.
    fn parse(&self, facts: &mut Facts) -> Result<(), Reason>;

    /// Parses again and sets all of `facts`, if the frame has more bytes than [`Self::parse`] could
    /// read; otherwise returns `None`.
    #[inline(always)]
    fn parse_all(&self, _facts: &mut Facts) -> Option<Result<(), Reason>> {
        None
    }

    /// Counts the packets of the parsed `facts`, if the frame may be a superframe.
    #[inline(always)]
    fn count_packets(&self, _facts: &mut Facts) {}
}

impl<F: Frame> Headers for F {
    #[inline(always)]
    fn parse(&self, facts: &mut Facts) -> Result<(), Reason> {
        parse(self, facts)
    }
}

/// Finds the facts of an IP packet; `facts` must be [`Facts::NONE`] before.
///
/// Results are written through references to initialized values: LLVM may move bytes that a
/// `Result` leaves undefined on the other path, and the verifier refuses that.
///
/// # Errors
///
/// The reason if the frame is not IP or is malformed.
#[inline(always)]
pub fn parse<F: Frame>(frame: &F, facts: &mut Facts) -> Result<(), Reason> {
    let mut payload = Payload::NONE;
    let packet = parse_network(frame, facts, &mut payload)?;
    if payload.later_fragment {
        return Ok(());
    }
    let before = frame.length() - packet.length();
    transport::parse(&packet, before, payload, facts)
}

/// Returns the family of a frame's packet and the offset of its IP header, or `None` for other
/// frames. Does not read the packet itself.
#[inline(always)]
pub fn network<F: Frame>(frame: &F) -> Option<(Family, usize)> {
    let mut before = 0;
    let family = match parse_link(frame, &mut before) {
        Ok(Network::Ipv4) => Family::V4,
        Ok(Network::Ipv6) => Family::V6,
        Err(_) => return None,
    };
    Some((family, before))
}

/// Returns the network protocol; adds to `before` the length of all headers before the protocol's
/// own.
#[inline(always)]
fn parse_link<F: Frame>(frame: &F, before: &mut usize) -> Result<Network, Reason> {
    match frame.link() {
        Link::Ethernet => ethernet::parse(frame, before),
        // Two bytes: from one, LLVM makes a comparison that the verifier does not follow.
        Link::Ip => match frame.load(0) {
            Some([first, _]) if first >> 4 == 4 => Ok(Network::Ipv4),
            Some([first, _]) if first >> 4 == 6 => Ok(Network::Ipv6),
            _ => Err(Reason::NotIp),
        },
    }
}

/// The part of [`parse`] before the transport header; returns the frame from its IP header on.
#[inline(always)]
#[expect(
    clippy::cast_possible_truncation,
    reason = "lengths of frames are below 2^32"
)]
fn parse_network<F: Frame>(
    frame: &F,
    facts: &mut Facts,
    payload: &mut Payload,
) -> Result<F, Reason> {
    facts.length = frame.length() as u32;
    let mut before = 0;
    let network = parse_link(frame, &mut before)?;
    let packet = frame.without_first(before);
    match network {
        Network::Ipv4 => ipv4::parse(&packet, facts, payload)?,
        Network::Ipv6 => ipv6::parse(&packet, facts, payload)?,
    }
    facts.protocol = payload.protocol;
    Ok(packet)
}

/// The sequence and acknowledgement number of a TCP segment (RFC 9293).
#[cfg(not(target_arch = "bpf"))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TcpNumbers {
    /// The sequence number.
    pub sequence: u32,
    /// The acknowledgement number.
    pub acknowledged: u32,
}

/// Returns the numbers of a frame's TCP segment, or `None` if it has none or they are missing.
#[cfg(not(target_arch = "bpf"))]
pub fn tcp_numbers<F: Frame>(frame: &F) -> Option<TcpNumbers> {
    let mut payload = Payload::NONE;
    let mut facts = Facts::NONE;
    let packet = parse_network(frame, &mut facts, &mut payload).ok()?;
    if payload.later_fragment || payload.protocol != PROTOCOL_TCP {
        return None;
    }
    let number = |offset| packet.load(offset).map(u32::from_be_bytes);
    Some(TcpNumbers {
        sequence: number(payload.offset + 4)?,
        acknowledged: number(payload.offset + 8)?,
    })
}

/// Returns the byte range of a TCP or UDP payload in its frame, or `None` for other or malformed
/// frames.
#[cfg(not(target_arch = "bpf"))]
pub fn payload_range<F: Frame>(frame: &F) -> Option<Range<usize>> {
    let mut payload = Payload::NONE;
    let mut facts = Facts::NONE;
    let packet = parse_network(frame, &mut facts, &mut payload).ok()?;
    if payload.later_fragment {
        return None;
    }
    let before = frame.length() - packet.length();
    transport::parse(&packet, before, payload, &mut facts).ok()?;
    match payload.protocol {
        PROTOCOL_TCP => {
            let [data_offset] = packet.load(payload.offset + 12)?;
            let header = usize::from(data_offset >> 4) * 4;
            Some(before + payload.offset + header..before + payload.end)
        }
        PROTOCOL_UDP => {
            let Datagram { start, length } = facts.datagram;
            Some(start as usize..(start + length) as usize)
        }
        _ => None,
    }
}
