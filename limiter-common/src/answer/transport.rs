//! The transport header of a packet that may get an answer: its fields, and the check of its checksum.

pub(super) use super::data_offset::{DATA_OFFSET, tcp_header};
use super::{
    Exchange, Loops,
    exchange::TRANSPORT,
    network::{payload_length, plain_checksum, transport_checksum},
};
use crate::address::Family;

pub(super) const ICMP: u8 = 1;
pub(super) const TCP: u8 = 6;
pub(super) const UDP: u8 = 17;
pub(super) const ICMPV6: u8 = 58;

/// The lengths of the shortest headers.
pub(super) const TCP_HEADER: u32 = 20;
pub(super) const UDP_HEADER: u32 = 8;
pub(super) const ICMP_HEADER: u32 = 8;

/// The offsets of the fields.
pub(super) const SOURCE_PORT: usize = TRANSPORT;
pub(super) const DESTINATION_PORT: usize = TRANSPORT + 2;
pub(super) const UDP_LENGTH: usize = TRANSPORT + 4;
pub(super) const UDP_CHECKSUM: usize = TRANSPORT + 6;
pub(super) const SEQUENCE: usize = TRANSPORT + 4;
pub(super) const ACKNOWLEDGED: usize = TRANSPORT + 8;
pub(super) const TCP_FLAGS: usize = TRANSPORT + 13;
pub(super) const WINDOW: usize = TRANSPORT + 14;
pub(super) const CHECKSUM: usize = TRANSPORT + 16;
pub(super) const URGENT: usize = TRANSPORT + 18;

/// Flags of a TCP segment.
pub(super) const FIN: u8 = 0x01;
pub(super) const SYN: u8 = 0x02;
pub(super) const RST: u8 = 0x04;
pub(super) const ACK: u8 = 0x10;

/// Whether the TCP packet has a valid segment that is no reset.
#[inline(always)]
pub(super) fn is_good_tcp<L: Loops>(exchange: &Exchange, loops: &L) -> bool {
    let length = payload_length(exchange);
    let header = tcp_header(exchange);
    header >= TCP_HEADER
        && header <= length
        && exchange.byte(TCP_FLAGS) & RST == 0
        && has_ports(exchange)
        && transport_checksum(exchange, loops, TRANSPORT, TCP, length) == 0
}

/// Whether the UDP packet has a valid datagram that fills it.
#[inline(always)]
pub(super) fn is_good_udp<L: Loops>(exchange: &Exchange, loops: &L) -> bool {
    let length = payload_length(exchange);
    if length < UDP_HEADER || u32::from(exchange.u16(UDP_LENGTH)) != length || !has_ports(exchange)
    {
        return false;
    }
    if exchange.u16(UDP_CHECKSUM) == 0 {
        // Only IPv4 allows it: the sender has computed none.
        return matches!(exchange.family(), Family::V4);
    }
    transport_checksum(exchange, loops, TRANSPORT, UDP, length) == 0
}

/// Whether the packet of its family's ICMP is a valid message.
#[inline(always)]
pub(super) fn is_good_icmp<L: Loops>(exchange: &Exchange, loops: &L) -> bool {
    let length = payload_length(exchange);
    if length < ICMP_HEADER {
        return false;
    }
    let checksum = match exchange.family() {
        Family::V4 => plain_checksum(exchange, loops, TRANSPORT, length),
        Family::V6 => transport_checksum(exchange, loops, TRANSPORT, ICMPV6, length),
    };
    checksum == 0
}

/// No socket uses port 0.
#[inline(always)]
fn has_ports(exchange: &Exchange) -> bool {
    exchange.u16(SOURCE_PORT) != 0 && exchange.u16(DESTINATION_PORT) != 0
}

/// Turns the ports into the answer's.
#[inline(always)]
pub(super) fn swap_ports(exchange: &mut Exchange) {
    let source = exchange.u16(SOURCE_PORT);
    exchange.set_u16(SOURCE_PORT, exchange.u16(DESTINATION_PORT));
    exchange.set_u16(DESTINATION_PORT, source);
}
