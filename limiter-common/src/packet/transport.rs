//! The transport header: its ports, and whether it is complete.

use super::{Datagram, Facts, Frame, PacketKind, Payload, Transport, tcp};
use crate::reason::Reason;

/// ICMP (RFC 792).
pub const PROTOCOL_ICMP: u8 = 1;
/// TCP (RFC 9293).
pub const PROTOCOL_TCP: u8 = 6;
/// UDP (RFC 768).
pub const PROTOCOL_UDP: u8 = 17;
const DCCP: u8 = 33;
/// ICMP for IPv6 (RFC 4443).
pub const PROTOCOL_ICMPV6: u8 = 58;
const SCTP: u8 = 132;
const UDP_LITE: u8 = 136;

/// The protocols with a header that starts with the source and the destination port.
pub const PROTOCOLS_WITH_PORTS: [u8; 5] = [PROTOCOL_TCP, PROTOCOL_UDP, DCCP, SCTP, UDP_LITE];

/// RFC 792 and RFC 4443: type, code, checksum, and four bytes that depend on the type.
const ICMP_HEADER: usize = 8;
const UDP_HEADER: usize = 8;
const PORTS: usize = 4;

/// Finds the ports, flags and type of a packet with a transport header, and the content of a UDP
/// datagram. `packet` starts at the IP header; `before` is the number of bytes before it.
#[inline(always)]
pub(super) fn parse<F: Frame>(
    packet: &F,
    before: usize,
    payload: Payload,
    facts: &mut Facts,
) -> Result<(), Reason> {
    match payload.protocol {
        PROTOCOL_TCP => {
            tcp::parse(packet, payload, facts)?;
            facts.transport = Transport::Tcp;
        }
        PROTOCOL_UDP => {
            facts.datagram = parse_udp(packet, before, payload)?;
            facts.transport = Transport::Ports;
        }
        DCCP | SCTP | UDP_LITE => {
            if payload.offset + PORTS > payload.end {
                return Err(Reason::MalformedTransport);
            }
            facts.transport = Transport::Ports;
        }
        protocol => {
            facts.transport = Transport::Other;
            if matches!(protocol, PROTOCOL_ICMP | PROTOCOL_ICMPV6) {
                if payload.offset + ICMP_HEADER > payload.end {
                    return Err(Reason::MalformedIcmp);
                }
                // Two bytes: from one, LLVM makes a comparison that the verifier does not follow.
                let Some([message_type, _]) = packet.load(payload.offset) else {
                    return Err(Reason::MalformedIcmp);
                };
                facts.kind = PacketKind::message(protocol, message_type, payload.hop_limit);
            }
            return Ok(());
        }
    }
    let Some([source_high, source_low, destination_high, destination_low]) =
        packet.load(payload.offset)
    else {
        return Err(Reason::MalformedTransport);
    };
    facts.source_port = u16::from_be_bytes([source_high, source_low]);
    facts.destination_port = u16::from_be_bytes([destination_high, destination_low]);
    Ok(())
}

/// Checks a UDP header (RFC 768), and returns the position of the content. The header's length is the
/// whole datagram's; a fragment is shorter.
#[inline(always)]
#[expect(
    clippy::cast_possible_truncation,
    reason = "offsets in frames are below 2^32"
)]
fn parse_udp<F: Frame>(packet: &F, before: usize, payload: Payload) -> Result<Datagram, Reason> {
    let Some(length) = packet.load::<2>(payload.offset + 4) else {
        return Err(Reason::MalformedUdp);
    };
    let length = usize::from(u16::from_be_bytes(length));
    if payload.offset + UDP_HEADER > payload.end
        || length < UDP_HEADER
        || (!payload.more_fragments && payload.offset + length > payload.end)
    {
        return Err(Reason::MalformedUdp);
    }
    let of_frame = payload.end - payload.offset;
    let length = if length < of_frame { length } else { of_frame };
    Ok(Datagram {
        start: (before + payload.offset + UDP_HEADER) as u32,
        length: (length - UDP_HEADER) as u32,
    })
}
