//! From a frame's bytes to plain facts.

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
    /// Its length in bytes, from the Ethernet header on.
    fn length(&self) -> usize;

    /// `N` bytes from `offset` on; `None` where the frame is too short.
    fn load<const N: usize>(&self, offset: usize) -> Option<[u8; N]>;

    /// The frame without its first `length` bytes, which are there.
    ///
    /// The kernel's verifier shall not know how many they are: it would walk all that follows once
    /// for each number of them.
    #[must_use]
    fn without_first(&self, length: usize) -> Self;
}

/// The headers of a frame: what a decision needs of it.
pub trait Headers {
    /// Finds the facts of an IP packet; `facts` must be [`Facts::NONE`] before.
    ///
    /// # Errors
    ///
    /// The reason for everything else: not IP, or malformed.
    fn parse(&self, facts: &mut Facts) -> Result<(), Reason>;

    /// Does so again, setting all of `facts`, where there is more of the frame than that could
    /// read; `None`: there is not.
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

/// What the limits need to know of an IP packet.
///
/// Without padding, so that the kernel program can hand it to functions of its own.
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
    /// Where there are ports; else 0.
    pub source_port: u16,
    /// Where there are ports; else 0.
    pub destination_port: u16,
    /// What is known of the transport header.
    pub transport: Transport,
    /// The IP protocol number of what is behind the last network header; of a later fragment of
    /// IPv6, where that is not known, the fragment header's own.
    pub protocol: u8,
    /// The flags of a TCP segment (RFC 9293, byte 13 of the header); else 0.
    pub tcp_flags: u8,
}

const _: () = assert!(size_of::<Facts>() == 24 + 3 * 8 + 8, "no padding");

/// What is known of a packet's transport header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u16)]
pub enum Transport {
    /// Nothing but the protocol: a later fragment of IPv4, which the network stack puts together
    /// with those of its own protocol alone.
    Unknown,
    /// Not even the protocol: a later fragment of IPv6. It may say whatever it likes; the network
    /// stack believes the first fragment.
    UnknownProtocol,
    /// It has no ports.
    Other,
    /// It has ports, and is not TCP's.
    Ports,
    /// It is TCP's.
    Tcp,
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
    /// Of no packet.
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
/// Results are written through references that hold a value before: what a `Result` leaves
/// undefined on the other path, LLVM may still move about, and the verifier refuses that.
///
/// # Errors
///
/// The reason for everything else: not IP, or malformed.
#[inline(always)]
pub fn parse<F: Frame>(frame: &F, facts: &mut Facts) -> Result<(), Reason> {
    facts.length = frame.length() as u64;
    let mut tags = 0;
    let network = ethernet::parse(frame, &mut tags)?;
    let frame = &frame.without_first(tags);
    let mut payload = Payload {
        offset: ethernet::HEADER,
        ..Payload::NONE
    };
    match network {
        ethernet::Network::Ipv4 => ipv4::parse(frame, facts, &mut payload)?,
        ethernet::Network::Ipv6 => ipv6::parse(frame, facts, &mut payload)?,
    }
    facts.protocol = payload.protocol;
    if payload.later_fragment {
        Ok(())
    } else {
        transport::parse(frame, payload, facts)
    }
}
