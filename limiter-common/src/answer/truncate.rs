//! The truncated answer to a DNS query (RFC 1035, RFC 7766): it makes the sender ask over TCP, which no
//! forger can.

use super::{
    Exchange, Loops,
    dns::{ADDITIONAL, ANSWER, ANSWERS, AUTHORITIES, FLAGS, question_end},
    exchange::TRANSPORT,
    network::{self, transport_checksum},
    transport::{UDP, UDP_CHECKSUM, UDP_LENGTH, is_good_udp, swap_ports},
};

/// The flags: truncated, recursion desired, checking disabled.
const TRUNCATED: u16 = 0x0200;
const RECURSION_DESIRED: u16 = 0x0100;
const CHECKING_DISABLED: u16 = 0x0010;

/// Writes the answer; returns whether there is one. It is never longer than the query: it keeps only the
/// header and the question.
#[inline(always)]
pub(super) fn write<L: Loops>(exchange: &mut Exchange, loops: &L) -> bool {
    let length = question_end(exchange, loops);
    if length == 0 || !is_good_udp(exchange, loops) {
        return false;
    }
    let flags = exchange.u16(FLAGS);
    let has_checksum = exchange.u16(UDP_CHECKSUM) != 0;
    swap_ports(exchange);
    exchange.set_u16(UDP_LENGTH, short(length));
    exchange.set_u16(UDP_CHECKSUM, 0);
    let kept = flags & (RECURSION_DESIRED | CHECKING_DISABLED);
    exchange.set_u16(FLAGS, kept | ANSWER | TRUNCATED);
    exchange.set_u16(ANSWERS, 0);
    exchange.set_u16(AUTHORITIES, 0);
    exchange.set_u16(ADDITIONAL, 0);
    network::write(exchange, TRANSPORT, UDP, length);
    if has_checksum {
        // Instead of 0, which would mean "no checksum".
        let checksum = match transport_checksum(exchange, loops, TRANSPORT, UDP, length) {
            0 => u16::MAX,
            checksum => checksum,
        };
        exchange.set_u16(UDP_CHECKSUM, checksum);
    }
    true
}

#[inline(always)]
#[expect(
    clippy::cast_possible_truncation,
    reason = "a datagram with one question is below 300 bytes"
)]
const fn short(length: u32) -> u16 {
    length as u16
}
