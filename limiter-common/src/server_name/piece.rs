//! The piece of a flow that programs tell userspace: a segment with some of its first bytes, or a datagram.

use crate::connection::Ends;

/// How many bytes from a connection's first on are read for its name.
pub const MOST_FIRST_BYTES: u32 = 4096;

/// The most bytes of a segment or a datagram that are told: the longest TCP header, and the first bytes.
pub const LONGEST_SEGMENT: usize = 60 + MOST_FIRST_BYTES as usize + 4;

/// A segment of a connection whose name is not known yet, or the content of a datagram. It consists of plain numbers.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Piece {
    /// The ends of its flow.
    pub ends: Ends,
    /// How many bytes the segment has with its TCP header, or the datagram's content has.
    pub whole_length: u32,
    /// The number of the IP protocol: TCP or UDP.
    pub protocol: u32,
    /// As much as is told of it: the segment from the TCP header on, or the datagram's content.
    pub segment: [u8; LONGEST_SEGMENT],
}

impl Piece {
    /// How many bytes there are before the segment.
    pub const HEADER: usize = size_of::<Self>() - LONGEST_SEGMENT;
}

const _: () = assert!(Piece::HEADER == 48 && LONGEST_SEGMENT.is_multiple_of(8));
