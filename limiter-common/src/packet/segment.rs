//! The position of a TCP segment in its frame.

use super::{Frame, PROTOCOL_TCP, Payload, parse_network};
use crate::packet::Facts;

/// The TCP header without options, in bytes.
pub const TCP_HEADER: usize = 20;

/// The position of a TCP segment in its frame, and its sequence number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// The offset of its header in the frame, in bytes.
    pub start: usize,
    /// The number of bytes with the header.
    pub length: usize,
    /// The number of bytes of the header, fewer than [`Self::length`] unless it is a fragment.
    pub header: usize,
    /// Whether the frame has all of it: a first fragment has not. Honest clients' network stacks
    /// send no fragments.
    pub is_whole: bool,
    /// The sequence number of the first byte of its payload.
    pub sequence: u32,
}

/// Longer than any payload.
const LONGER: u32 = 1 << 16;

impl Segment {
    /// The number of bytes of its payload; for a fragment, which does not tell, a number above any
    /// payload's.
    #[must_use]
    #[inline(always)]
    #[expect(
        clippy::cast_possible_truncation,
        reason = "lengths of frames are below 2^32"
    )]
    pub const fn payload_length(&self) -> u32 {
        if self.is_whole {
            self.length.wrapping_sub(self.header) as u32
        } else {
            LONGER
        }
    }
}

/// Returns the position of a frame's TCP segment, or `None` without a payload or in a later fragment.
/// Parsing the packet has already checked the headers.
#[inline(always)]
pub fn segment<F: Frame>(frame: &F) -> Option<Segment> {
    let mut payload = Payload::NONE;
    let mut facts = Facts::NONE;
    let packet = parse_network(frame, &mut facts, &mut payload).ok()?;
    if payload.later_fragment || payload.protocol != PROTOCOL_TCP {
        return None;
    }
    let sequence = u32::from_be_bytes(packet.load(payload.offset + 4)?);
    let [data_offset] = packet.load(payload.offset + 12)?;
    let header = (data_offset >> 4) as usize * 4;
    let length = payload.end.wrapping_sub(payload.offset);
    let is_whole = !payload.more_fragments;
    // All of a fragment's payload may be in the later fragments.
    if header < TCP_HEADER || length < header || is_whole && length == header {
        return None;
    }
    let before = frame.length() - packet.length();
    Some(Segment {
        start: before + payload.offset,
        length,
        header,
        is_whole,
        sequence,
    })
}
