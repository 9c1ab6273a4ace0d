//! The reset of a TCP segment (RFC 9293, section 3.10.7.1).

use super::{
    Exchange, Loops,
    exchange::TRANSPORT,
    network::{self, payload_length, protocol, transport_checksum},
    transport::{
        ACK, ACKNOWLEDGED, CHECKSUM, DATA_OFFSET, FIN, RST, SEQUENCE, SYN, TCP, TCP_FLAGS,
        TCP_HEADER, URGENT, WINDOW, is_good_tcp, swap_ports, tcp_header,
    },
};

/// A header of five words, in the byte of the data offset.
const SHORTEST: u8 = 5 << 4;

/// Writes the answer; returns whether there is one. It is never longer than the segment.
#[inline(always)]
pub(super) fn write<L: Loops>(exchange: &mut Exchange, loops: &L) -> bool {
    if protocol(exchange) != TCP || !is_good_tcp(exchange, loops) {
        return false;
    }
    let flags = exchange.byte(TCP_FLAGS);
    let (sequence, acknowledged, answered) = if flags & ACK != 0 {
        (exchange.u32(ACKNOWLEDGED), 0, RST)
    } else {
        let next = exchange
            .u32(SEQUENCE)
            .wrapping_add(payload_length(exchange) - tcp_header(exchange))
            .wrapping_add(u32::from(flags & SYN != 0))
            .wrapping_add(u32::from(flags & FIN != 0));
        (0, next, RST | ACK)
    };
    swap_ports(exchange);
    exchange.set_u32(SEQUENCE, sequence);
    exchange.set_u32(ACKNOWLEDGED, acknowledged);
    exchange.set_byte(DATA_OFFSET, SHORTEST);
    exchange.set_byte(TCP_FLAGS, answered);
    exchange.set_u16(WINDOW, 0);
    exchange.set_u16(CHECKSUM, 0);
    exchange.set_u16(URGENT, 0);
    network::write(exchange, TRANSPORT, TCP, TCP_HEADER);
    let checksum = transport_checksum(exchange, loops, TRANSPORT, TCP, TCP_HEADER);
    exchange.set_u16(CHECKSUM, checksum);
    true
}
