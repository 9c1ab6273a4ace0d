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

const PROTOCOL_TCP: u8 = 6;

/// The facts of an IP packet.
///
/// # Errors
///
/// The reason for everything else: not IP, or malformed.
#[inline(always)]
pub fn parse<F: Frame>(frame: &F) -> Result<Facts, Reason> {
    let (network, offset) = ethernet::parse(frame)?;
    let (source, payload) = match network {
        ethernet::Network::Ipv4 => ipv4::parse(frame, offset)?,
        ethernet::Network::Ipv6 => ipv6::parse(frame, offset)?,
    };
    let opens_connection = payload.protocol == PROTOCOL_TCP
        && !payload.later_fragment
        && tcp::opens_connection(frame, payload)?;
    Ok(Facts {
        source,
        length: frame.length() as u64,
        opens_connection,
    })
}

#[cfg(test)]
mod tests;
