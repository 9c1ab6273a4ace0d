//! Parses a frame's bytes into plain facts.

mod asked;
mod ethernet;
mod facts;
mod frame;
mod ipv4;
mod ipv6;
mod payload;
mod segment;
mod tcp;
mod tcp_state;
mod transport;

#[cfg(not(target_arch = "bpf"))]
use core::ops::Range;

use self::payload::Payload;
pub use self::{
    asked::Asked,
    facts::{Datagram, Facts, Transport},
    frame::Frame,
    segment::{Segment, segment},
    tcp::{FLAG_ACK, FLAG_RST, FLAG_SYN},
    tcp_state::TcpState,
    transport::{PROTOCOL_TCP, PROTOCOL_UDP, PROTOCOLS_WITH_PORTS},
};
use crate::{address::Family, reason::Reason};

/// The headers of a frame, which are all that a decision needs.
pub trait Headers {
    /// Finds the facts of an IP packet; `facts` must be [`Facts::NONE`] before.
    ///
    /// # Errors
    ///
    /// The reason if the frame is not IP or is malformed.
    fn parse(&self, facts: &mut Facts) -> Result<(), Reason>;

    /// Parses again and sets all of `facts`, if the frame has more bytes than [`Self::parse`] could
    /// read; `None`: it does not.
    #[inline(always)]
    fn parse_all(&self, _facts: &mut Facts) -> Option<Result<(), Reason>> {
        None
    }
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
    let mut payload = Payload {
        offset: ethernet::HEADER,
        ..Payload::NONE
    };
    let untagged = parse_network(frame, facts, &mut payload)?;
    if payload.later_fragment {
        return Ok(());
    }
    let tags = frame.length() - untagged.length();
    transport::parse(&untagged, tags, payload, facts)
}

/// Returns the family of the packet in a frame, and where its IP header starts; `None`: it has
/// neither. Nothing of the packet is read.
#[inline(always)]
pub fn network<F: Frame>(frame: &F) -> Option<(Family, usize)> {
    let mut tags = 0;
    let family = match ethernet::parse(frame, &mut tags) {
        Ok(ethernet::Network::Ipv4) => Family::V4,
        Ok(ethernet::Network::Ipv6) => Family::V6,
        Err(_) => return None,
    };
    Some((family, ethernet::HEADER + tags))
}

/// Does the part of [`parse`] before the transport header; returns the frame without its tags.
#[inline(always)]
fn parse_network<F: Frame>(
    frame: &F,
    facts: &mut Facts,
    payload: &mut Payload,
) -> Result<F, Reason> {
    facts.length = frame.length() as u64;
    let mut tags = 0;
    let network = ethernet::parse(frame, &mut tags)?;
    let frame = frame.without_first(tags);
    match network {
        ethernet::Network::Ipv4 => ipv4::parse(&frame, facts, payload)?,
        ethernet::Network::Ipv6 => ipv6::parse(&frame, facts, payload)?,
    }
    facts.protocol = payload.protocol;
    Ok(frame)
}

/// The numbers of a TCP segment (RFC 9293).
#[cfg(not(target_arch = "bpf"))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TcpNumbers {
    /// The sequence number.
    pub sequence: u32,
    /// The acknowledgement number.
    pub acknowledged: u32,
}

/// Returns the numbers of a frame's TCP segment; `None`: it has none, or they are missing.
#[cfg(not(target_arch = "bpf"))]
pub fn tcp_numbers<F: Frame>(frame: &F) -> Option<TcpNumbers> {
    let mut payload = Payload {
        offset: ethernet::HEADER,
        ..Payload::NONE
    };
    let mut facts = Facts::NONE;
    let frame = parse_network(frame, &mut facts, &mut payload).ok()?;
    if payload.later_fragment || payload.protocol != PROTOCOL_TCP {
        return None;
    }
    let number = |offset| frame.load(offset).map(u32::from_be_bytes);
    Some(TcpNumbers {
        sequence: number(payload.offset + 4)?,
        acknowledged: number(payload.offset + 8)?,
    })
}

/// Returns where the payload of a frame's TCP segment or UDP datagram is, in bytes from the Ethernet
/// header on; `None`: it has none of these, or is malformed.
#[cfg(not(target_arch = "bpf"))]
pub fn payload_place<F: Frame>(frame: &F) -> Option<Range<usize>> {
    let mut payload = Payload {
        offset: ethernet::HEADER,
        ..Payload::NONE
    };
    let mut facts = Facts::NONE;
    let untagged = parse_network(frame, &mut facts, &mut payload).ok()?;
    if payload.later_fragment {
        return None;
    }
    let tags = frame.length() - untagged.length();
    transport::parse(&untagged, tags, payload, &mut facts).ok()?;
    match payload.protocol {
        PROTOCOL_TCP => {
            let [data_offset] = untagged.load(payload.offset + 12)?;
            let header = usize::from(data_offset >> 4) * 4;
            Some(tags + payload.offset + header..tags + payload.end)
        }
        PROTOCOL_UDP => {
            let Datagram { start, length } = facts.datagram;
            Some(start as usize..(start + length) as usize)
        }
        _ => None,
    }
}
