//! TCP (RFC 9293), as far as opening a connection goes.

use super::{Frame, Payload};
use crate::reason::Reason;

const MIN_HEADER: usize = 20;
const FLAG_SYN: u8 = 0x02;
const FLAG_ACK: u8 = 0x10;

/// Whether the segment opens a connection: SYN without ACK.
#[inline(always)]
pub(super) fn opens_connection<F: Frame>(frame: &F, payload: Payload) -> Result<bool, Reason> {
    // The data offset and the flags.
    let Some([data_offset, flags]) = frame.load::<2>(payload.offset + 12) else {
        return Err(Reason::MalformedTcp);
    };
    let header_length = usize::from(data_offset >> 4) * 4;
    if header_length < MIN_HEADER || payload.offset + header_length > payload.end {
        return Err(Reason::MalformedTcp);
    }
    Ok(flags & (FLAG_SYN | FLAG_ACK) == FLAG_SYN)
}
