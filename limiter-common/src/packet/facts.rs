//! The facts of an IP packet.

use super::PacketKind;
use crate::{address::Address, traffic::Traffic};

/// The facts of an IP packet that limits need.
///
/// It has no padding, so that the kernel program can pass it to its functions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Facts {
    /// The source address.
    pub source: Address,
    /// The destination's leading 64 bits, aligned as in [`Address`]; its family is the source's.
    pub destination_high: u64,
    /// The destination's trailing 64 bits.
    pub destination_low: u64,
    /// The frame's length in bytes, from the link's header on; for a superframe, the sum of its
    /// packets' frames.
    pub length: u32,
    /// The number of packets that the frame carries: 1, or more if it is a superframe.
    pub packets: u32,
    /// The position of its UDP datagram's content.
    pub datagram: Datagram,
    /// The source port; 0 if there are no ports.
    pub source_port: u16,
    /// The destination port; 0 if there are no ports.
    pub destination_port: u16,
    /// The kind of a TCP segment or an ICMP message.
    pub kind: PacketKind,
    /// The known part of the transport header.
    pub transport: Transport,
    /// The IP protocol number of the payload behind the last network header. In a later fragment of
    /// IPv6 it is unknown: the fragment header's own number.
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

    /// The packets and bytes that the frame carries.
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

/// The position of the UDP content in a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Datagram {
    /// The offset in the frame, in bytes.
    pub start: u32,
    /// The number of bytes in the frame: the first fragment of a datagram has only some, a later
    /// one none.
    pub length: u32,
}

impl Datagram {
    /// For a packet without UDP content.
    pub const NONE: Self = Self {
        start: 0,
        length: 0,
    };
}

/// The known part of a packet's transport header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Transport {
    /// Only the protocol is known: a later fragment of IPv4, which the network stack reassembles
    /// only with fragments of the same protocol.
    Unknown,
    /// Not even the protocol is known: a later fragment of IPv6. Its protocol field may have any
    /// value; the network stack uses the first fragment's.
    UnknownProtocol,
    /// A protocol without ports.
    Other,
    /// A protocol with ports other than TCP.
    Ports,
    /// TCP.
    Tcp,
}
