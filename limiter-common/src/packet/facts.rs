//! The facts of an IP packet.

use super::PacketKind;
use crate::{address::Address, traffic::Traffic};

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
    /// The frame's length in bytes, from the link's header on; of a superframe, that of the frames
    /// that it is made of.
    pub length: u32,
    /// The number of packets that the frame carries: 1, or more if it is a superframe.
    pub packets: u32,
    /// Where the content of its UDP datagram is.
    pub datagram: Datagram,
    /// The source port; 0 if there are no ports.
    pub source_port: u16,
    /// The destination port; 0 if there are no ports.
    pub destination_port: u16,
    /// The kind of a TCP segment or an ICMP message.
    pub kind: PacketKind,
    /// The known part of the transport header.
    pub transport: Transport,
    /// The IP protocol number of the payload behind the last network header; in a later fragment
    /// of IPv6, where that is not known, the fragment header's own.
    pub protocol: u8,
}

const _: () = assert!(size_of::<Facts>() == 24 + 4 * 8 + 8, "no padding");

impl Facts {
    /// The facts of no packet.
    pub const NONE: Self = Self {
        source: Address::v4([0; 4]),
        destination_high: 0,
        destination_low: 0,
        length: 0,
        packets: 1,
        datagram: Datagram::NONE,
        source_port: 0,
        destination_port: 0,
        kind: PacketKind::OTHER,
        transport: Transport::Unknown,
        protocol: 0,
    };

    /// Returns the packets and the bytes that the frame carries.
    #[must_use]
    #[inline(always)]
    pub const fn traffic(&self) -> Traffic {
        Traffic {
            packets: self.packets as u64,
            bytes: self.length as u64,
        }
    }

    #[inline(always)]
    pub(super) const fn set_destination(&mut self, destination: Address) {
        self.destination_high = destination.high;
        self.destination_low = destination.low;
    }
}

/// Where the content of a frame's UDP datagram is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Datagram {
    /// The offset in the frame, in bytes.
    pub start: u32,
    /// The number of bytes, as far as the frame has them: the first fragment of a datagram has only
    /// some, a later one none.
    pub length: u32,
}

impl Datagram {
    /// That of a packet that has no content of UDP.
    pub const NONE: Self = Self {
        start: 0,
        length: 0,
    };
}

/// How much of a packet's transport header is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
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
