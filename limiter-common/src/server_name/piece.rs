//! The piece of a flow that programs send to userspace: a segment with some of its first bytes, or a datagram.

use crate::connection::Ends;

/// The number of a connection's first bytes that are read for its name.
pub const MOST_FIRST_BYTES: u32 = 4096;

/// The most bytes sent of a segment or a datagram: the longest TCP header, and the first bytes.
pub const LONGEST_SEGMENT: usize = 60 + MOST_FIRST_BYTES as usize + 4;

/// A segment of a connection with an unknown name, or the content of a datagram. It consists of plain numbers.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Piece {
    /// The ends of its flow.
    pub ends: Ends,
    /// The number of bytes of the segment with its TCP header, or of the datagram's content.
    pub whole_length: u32,
    /// The number of the IP protocol: TCP or UDP.
    pub protocol: u32,
    /// The part that is sent: the segment from the TCP header on, or the datagram's content.
    pub segment: [u8; LONGEST_SEGMENT],
}

impl Piece {
    /// The number of bytes before the segment.
    pub const HEADER: usize = size_of::<Self>() - LONGEST_SEGMENT;
}

const _: () = assert!(Piece::HEADER == 48 && LONGEST_SEGMENT.is_multiple_of(8));
