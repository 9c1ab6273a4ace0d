//! From a frame's bytes to plain facts.

mod ethernet;
mod ipv4;
mod ipv6;
mod tcp;

use crate::{address::Address, reason::Reason};

/// The bytes of a frame.
pub trait Frame {
    /// Its length in bytes, from the Ethernet header on.
    fn length(&self) -> usize;

    /// `N` bytes from `offset` on; `None` where the frame is too short.
    fn load<const N: usize>(&self, offset: usize) -> Option<[u8; N]>;
}

/// What the limits need to know of an IP packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Facts {
    /// The source address.
    pub source: Address,
    /// The frame's length in bytes, from the Ethernet header on.
    pub length: u64,
    /// A TCP segment with SYN and without ACK.
    pub opens_connection: bool,
}

/// The part of an IP packet behind its last network header.
#[derive(Clone, Copy)]
struct Payload {
    /// The IP protocol number.
    protocol: u8,
    /// Where it starts in the frame.
    offset: usize,
    /// Where it ends in the frame: padding does not belong to it.
    end: usize,
    /// It is not the start of the datagram, so it has no transport header.
    later_fragment: bool,
}

impl Payload {
    const NONE: Self = Self {
        protocol: 0,
        offset: 0,
        end: 0,
        later_fragment: false,
    };
}

const PROTOCOL_TCP: u8 = 6;

impl Facts {
    /// Of no packet.
    pub const NONE: Self = Self {
        source: Address::v4([0; 4]),
        length: 0,
        opens_connection: false,
    };
}

/// Finds the facts of an IP packet.
///
/// Results are written through references that hold a value before: what a `Result` leaves
/// undefined on the other path, LLVM may still move about, and the verifier refuses that.
///
/// # Errors
///
/// The reason for everything else: not IP, or malformed.
#[inline(always)]
pub fn parse<F: Frame>(frame: &F, facts: &mut Facts) -> Result<(), Reason> {
    let mut payload = Payload::NONE;
    facts.length = frame.length() as u64;
    match ethernet::parse(frame, &mut payload.offset)? {
        ethernet::Network::Ipv4 => ipv4::parse(frame, &mut facts.source, &mut payload)?,
        ethernet::Network::Ipv6 => ipv6::parse(frame, &mut facts.source, &mut payload)?,
    }
    facts.opens_connection = payload.protocol == PROTOCOL_TCP
        && !payload.later_fragment
        && tcp::opens_connection(frame, payload)?;
    Ok(())
}
