//! The transport header: its ports, and whether it is complete.

use super::{Datagram, Facts, Frame, Payload, Transport, tcp};
use crate::reason::Reason;

const ICMP: u8 = 1;
/// TCP (RFC 9293).
pub const PROTOCOL_TCP: u8 = 6;
/// UDP (RFC 768).
pub const PROTOCOL_UDP: u8 = 17;
const DCCP: u8 = 33;
const ICMPV6: u8 = 58;
const SCTP: u8 = 132;
const UDP_LITE: u8 = 136;

/// The protocols whose headers start with the source and the destination port.
pub const PROTOCOLS_WITH_PORTS: [u8; 5] = [PROTOCOL_TCP, PROTOCOL_UDP, DCCP, SCTP, UDP_LITE];

/// RFC 792 and RFC 4443: type, code, checksum, and four bytes that depend on the type.
const ICMP_HEADER: usize = 8;
pub(super) const UDP_HEADER: usize = 8;
const PORTS: usize = 4;

/// Finds the ports and flags of a packet that has its transport header.
#[inline(always)]
pub(super) fn parse<F: Frame>(
    frame: &F,
    payload: Payload,
    facts: &mut Facts,
) -> Result<(), Reason> {
    match payload.protocol {
        PROTOCOL_TCP => {
            tcp::parse(frame, payload, facts)?;
            facts.transport = Transport::Tcp;
        }
        PROTOCOL_UDP => {
            check_udp(frame, payload)?;
            facts.transport = Transport::Ports;
        }
        DCCP | SCTP | UDP_LITE => {
            if payload.offset + PORTS > payload.end {
                return Err(Reason::MalformedTransport);
            }
            facts.transport = Transport::Ports;
        }
        protocol => {
            if matches!(protocol, ICMP | ICMPV6) && payload.offset + ICMP_HEADER > payload.end {
                return Err(Reason::MalformedIcmp);
            }
            facts.transport = Transport::Other;
            return Ok(());
        }
    }
    let Some([source_high, source_low, destination_high, destination_low]) =
        frame.load(payload.offset)
    else {
        return Err(Reason::MalformedTransport);
    };
    facts.source_port = u16::from_be_bytes([source_high, source_low]);
    facts.destination_port = u16::from_be_bytes([destination_high, destination_low]);
    Ok(())
}

/// Returns where the content of a UDP datagram is, in the frame with `tags` bytes more before it.
#[inline(always)]
pub(super) fn udp_content<F: Frame>(frame: &F, payload: Payload, tags: usize) -> Option<Datagram> {
    let length = usize::from(u16::from_be_bytes(frame.load(payload.offset + 4)?));
    let start = payload.offset + UDP_HEADER;
    let end = (payload.offset + length).min(payload.end);
    (start < end).then(|| Datagram {
        start: tags + start,
        length: end - start,
    })
}

/// Checks a UDP header (RFC 768). Its length is that of the whole datagram; a fragment is shorter.
#[inline(always)]
fn check_udp<F: Frame>(frame: &F, payload: Payload) -> Result<(), Reason> {
    let Some(length) = frame.load::<2>(payload.offset + 4) else {
        return Err(Reason::MalformedUdp);
    };
    let length = usize::from(u16::from_be_bytes(length));
    if payload.offset + UDP_HEADER > payload.end
        || length < UDP_HEADER
        || (!payload.more_fragments && payload.offset + length > payload.end)
    {
        return Err(Reason::MalformedUdp);
    }
    Ok(())
}
