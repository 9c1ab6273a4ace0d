//! IPv4 (RFC 791).

use super::{Facts, Frame, Payload};
use crate::{address::Address, reason::Reason};

const MIN_HEADER: usize = 20;
/// The offset field of a fragment, without the flags above it.
const FRAGMENT_OFFSET: u16 = 0x1fff;
const MORE_FRAGMENTS: u16 = 0x2000;

/// Finds the addresses, and the payload behind the header. `payload` starts at the header.
#[inline(always)]
pub(super) fn parse<F: Frame>(
    frame: &F,
    facts: &mut Facts,
    payload: &mut Payload,
) -> Result<(), Reason> {
    let offset = payload.offset;
    let Some(header) = frame.load::<MIN_HEADER>(offset) else {
        return Err(Reason::MalformedIpv4);
    };
    let header_length = usize::from(header[0] & 0x0f) * 4;
    let total_length = usize::from(u16::from_be_bytes([header[2], header[3]]));
    if header[0] >> 4 != 4
        || header_length < MIN_HEADER
        || total_length < header_length
        || offset + total_length > frame.length()
    {
        return Err(Reason::MalformedIpv4);
    }
    let fragment = u16::from_be_bytes([header[6], header[7]]);
    facts.source = Address::v4([header[12], header[13], header[14], header[15]]);
    facts.set_destination(Address::v4([
        header[16], header[17], header[18], header[19],
    ]));
    *payload = Payload {
        protocol: header[9],
        hop_limit: 0,
        offset: offset + header_length,
        end: offset + total_length,
        later_fragment: fragment & FRAGMENT_OFFSET != 0,
        more_fragments: fragment & MORE_FRAGMENTS != 0,
    };
    Ok(())
}
