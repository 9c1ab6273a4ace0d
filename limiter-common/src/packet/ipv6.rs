//! IPv6 (RFC 8200) and its extension headers.

use super::{Facts, Frame, Payload, Transport};
use crate::{address::Address, reason::Reason};

const HEADER: usize = 40;
/// Only an attacker needs more extension headers than this in one packet.
const MAX_EXTENSIONS: u32 = 8;

const HOP_BY_HOP: u8 = 0;
const ROUTING: u8 = 43;
const FRAGMENT: u8 = 44;
const AUTHENTICATION: u8 = 51;
const DESTINATION: u8 = 60;

/// The offset field of a fragment header, without the flags below it.
const FRAGMENT_OFFSET: u16 = 0xfff8;
const MORE_FRAGMENTS: u16 = 1;

/// Finds the addresses, and the payload behind all headers. `payload` starts at the first header.
#[inline(always)]
pub(super) fn parse<F: Frame>(
    frame: &F,
    facts: &mut Facts,
    payload: &mut Payload,
) -> Result<(), Reason> {
    let offset = payload.offset;
    let Some(start) = frame.load::<8>(offset) else {
        return Err(Reason::MalformedIpv6);
    };
    let end = offset + HEADER + usize::from(u16::from_be_bytes([start[4], start[5]]));
    if start[0] >> 4 != 6 || end > frame.length() {
        return Err(Reason::MalformedIpv6);
    }
    let Some(high) = frame.load::<8>(offset + 8) else {
        return Err(Reason::MalformedIpv6);
    };
    let Some(low) = frame.load::<8>(offset + 16) else {
        return Err(Reason::MalformedIpv6);
    };
    facts.source = Address::v6(high, low);
    // A socket for both families would take it for the IPv4 address, and so would readers of a log.
    // The network stack accepts it, though no host may send it.
    if facts.source.is_v4_mapped() {
        return Err(Reason::MalformedIpv6);
    }
    let Some(high) = frame.load::<8>(offset + 24) else {
        return Err(Reason::MalformedIpv6);
    };
    let Some(low) = frame.load::<8>(offset + 32) else {
        return Err(Reason::MalformedIpv6);
    };
    facts.set_destination(Address::v6(high, low));
    *payload = Payload {
        protocol: start[6],
        hop_limit: start[7],
        offset: offset + HEADER,
        end,
        later_fragment: false,
        more_fragments: false,
    };
    skip_extensions(frame, payload)?;
    if payload.later_fragment {
        facts.transport = Transport::UnknownProtocol;
    }
    Ok(())
}

/// Moves `payload` behind the extension headers; in a later fragment, to just behind the fragment
/// header.
#[inline(always)]
fn skip_extensions<F: Frame>(frame: &F, payload: &mut Payload) -> Result<(), Reason> {
    let mut extensions = 0;
    while matches!(
        payload.protocol,
        HOP_BY_HOP | ROUTING | FRAGMENT | AUTHENTICATION | DESTINATION
    ) {
        if extensions == MAX_EXTENSIONS {
            return Err(Reason::MalformedIpv6);
        }
        extensions += 1;
        let Some(header) = frame.load::<4>(payload.offset) else {
            return Err(Reason::MalformedIpv6);
        };
        let units = usize::from(header[1]);
        let length = match payload.protocol {
            FRAGMENT => {
                let fragment = u16::from_be_bytes([header[2], header[3]]);
                payload.later_fragment = fragment & FRAGMENT_OFFSET != 0;
                payload.more_fragments = fragment & MORE_FRAGMENTS != 0;
                8
            }
            // RFC 4302: in units of four bytes, less two.
            AUTHENTICATION => (units + 2) * 4,
            _ => (units + 1) * 8,
        };
        payload.offset += length;
        if payload.offset > payload.end {
            return Err(Reason::MalformedIpv6);
        }
        if payload.later_fragment {
            return Ok(());
        }
        payload.protocol = header[0];
    }
    Ok(())
}
