//! Parses a frame's bytes into plain facts.

mod ethernet;
mod ipv4;
mod ipv6;
mod tcp;
mod transport;

use crate::{address::Address, reason::Reason};

pub use self::tcp::{FLAG_ACK, FLAG_SYN};
pub use self::transport::{PROTOCOL_TCP, PROTOCOLS_WITH_PORTS};

/// The bytes of a frame.
pub trait Frame: Sized {
    /// Returns the frame's length in bytes, from the Ethernet header on.
    fn length(&self) -> usize;

    /// Returns `N` bytes from `offset` on; `None`: the frame is too short.
    fn load<const N: usize>(&self, offset: usize) -> Option<[u8; N]>;

    /// Returns the frame without its first `length` bytes, which must exist.
    ///
    /// The implementation must hide `length` from the kernel's verifier, which would walk all later
    /// code once for each value.
    #[must_use]
    fn without_first(&self, length: usize) -> Self;
}

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

/// What limits need to know of an IP packet.
///
/// It has no padding, so that the kernel program can pass it to its functions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Facts {
    /// The source address.
    pub source: Address,
    /// The destination's leading 64 bits, as [`Address`] aligns them; its family is the
    /// source's.
    pub destination_high: u64,
    /// The destination's trailing 64 bits.
    pub destination_low: u64,
    /// The frame's length in bytes, from the Ethernet header on.
    pub length: u64,
    /// The source port; 0 if there are no ports.
    pub source_port: u16,
    /// The destination port; 0 if there are no ports.
    pub destination_port: u16,
    /// The known part of the transport header.
    pub transport: Transport,
    /// The IP protocol number of the payload behind the last network header; in a later fragment
    /// of IPv6, where that is not known, the fragment header's own.
    pub protocol: u8,
    /// The flags of a TCP segment (RFC 9293, byte 13 of the header); else 0.
    pub tcp_flags: u8,
}

const _: () = assert!(size_of::<Facts>() == 24 + 3 * 8 + 8, "no padding");

/// How much of a packet's transport header is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u16)]
pub enum Transport {
    /// Only the protocol is known: a later fragment of IPv4, which the network stack reassembles
    /// only with those of the same protocol.
    Unknown,
    /// Not even the protocol is known: a later fragment of IPv6. Its protocol field may have any
    /// value; the network stack uses that of the first fragment.
    UnknownProtocol,
    /// It has no ports.
    Other,
    /// It has ports, and is not TCP.
    Ports,
    /// It is TCP.
    Tcp,
}

/// The part of an IP packet behind its last network header.
#[derive(Clone, Copy)]
struct Payload {
    /// The IP protocol number.
    protocol: u8,
    /// Where it starts in the frame.
    offset: usize,
    /// Where it ends in the frame, without padding.
    end: usize,
    /// It is not the start of the datagram, so it has no transport header.
    later_fragment: bool,
    /// It is not the end of the datagram.
    more_fragments: bool,
}

impl Payload {
    const NONE: Self = Self {
        protocol: 0,
        offset: 0,
        end: 0,
        later_fragment: false,
        more_fragments: false,
    };
}

impl Facts {
    /// The facts of no packet.
    pub const NONE: Self = Self {
        source: Address::v4([0; 4]),
        destination_high: 0,
        destination_low: 0,
        length: 0,
        source_port: 0,
        destination_port: 0,
        transport: Transport::Unknown,
        protocol: 0,
        tcp_flags: 0,
    };

    #[inline(always)]
    const fn set_destination(&mut self, destination: Address) {
        self.destination_high = destination.high;
        self.destination_low = destination.low;
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
    let frame = &parse_network(frame, facts, &mut payload)?;
    if payload.later_fragment {
        Ok(())
    } else {
        transport::parse(frame, payload, facts)
    }
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
