//! TCP (RFC 9293): the flags.

use super::{Facts, Frame, PacketKind, Payload};
use crate::reason::Reason;

const MIN_HEADER: usize = 20;

/// The flag of a segment that opens a connection, or of the reply to it.
pub const FLAG_SYN: u8 = 0x02;
/// The flag of a segment that ends a connection at once.
pub const FLAG_RST: u8 = 0x04;
/// The flag of a segment that marks the end of urgent data. The network stack removes the last
/// urgent byte from the data that the server reads.
pub const FLAG_URG: u8 = 0x20;
/// The flag of every segment except the one that opens a connection.
pub const FLAG_ACK: u8 = 0x10;

/// Checks the header and finds its flags.
#[inline(always)]
pub(super) fn parse<F: Frame>(
    frame: &F,
    payload: Payload,
    facts: &mut Facts,
) -> Result<(), Reason> {
    // The data offset and the flags.
    let Some([data_offset, flags]) = frame.load::<2>(payload.offset + 12) else {
        return Err(Reason::MalformedTcp);
    };
    let header_length = usize::from(data_offset >> 4) * 4;
    if header_length < MIN_HEADER || payload.offset + header_length > payload.end {
        return Err(Reason::MalformedTcp);
    }
    facts.kind = PacketKind::segment(flags);
    Ok(())
}

impl Facts {
    /// Whether the segment marks the end of urgent data.
    #[must_use]
    #[inline(always)]
    pub const fn is_urgent(&self) -> bool {
        self.kind.tcp_flags() & FLAG_URG != 0
    }

    /// Whether it is the first segment of a TCP connection.
    #[must_use]
    #[inline(always)]
    pub const fn is_first_segment(&self) -> bool {
        // The bits above the flags tell segments from messages.
        const MASK: u16 = !0xff | (FLAG_SYN | FLAG_ACK) as u16;
        self.kind.number() & MASK == PacketKind::TCP | FLAG_SYN as u16
    }
}
