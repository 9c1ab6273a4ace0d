//! The piece of a connection that programs tell userspace: a segment with some of its first bytes.

use crate::connection::Ends;

/// How many bytes from a connection's first on are read for its name.
pub const MOST_FIRST_BYTES: u32 = 4096;

/// The most bytes of a segment that are told: the longest TCP header, and the first bytes.
pub const LONGEST_SEGMENT: usize = 60 + MOST_FIRST_BYTES as usize + 4;

/// A segment of a connection whose name is not known yet. It consists of plain numbers.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Piece {
    /// The ends of its connection.
    pub ends: Ends,
    /// How many bytes the segment has with its TCP header.
    pub segment_length: u32,
    /// How many of these are told.
    pub told: u32,
    /// The segment, from the TCP header on.
    pub segment: [u8; LONGEST_SEGMENT],
}

impl Piece {
    /// How many bytes there are before the segment.
    pub const HEADER: usize = size_of::<Self>() - LONGEST_SEGMENT;
}

const _: () = assert!(Piece::HEADER == 48 && LONGEST_SEGMENT.is_multiple_of(8));
