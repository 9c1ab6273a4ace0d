//! The truncated answer to a DNS query (RFC 1035, RFC 7766): it makes the sender ask over TCP,
//! which no forger can.

use super::{
    Exchange, Loops,
    exchange::{TRANSPORT, offset},
    network::{self, payload_length, protocol, transport_checksum},
    transport::{UDP, UDP_CHECKSUM, UDP_HEADER, UDP_LENGTH, is_good_udp, swap_ports},
};

/// Where the message's fields are.
const FLAGS: usize = TRANSPORT + 10;
const QUESTIONS: usize = TRANSPORT + 12;
const ANSWERS: usize = TRANSPORT + 14;
const AUTHORITIES: usize = TRANSPORT + 16;
const ADDITIONAL: usize = TRANSPORT + 18;
const QUESTION: u32 = offset(TRANSPORT + 20);

/// The length of the UDP header and the message's.
const HEADERS: u32 = 20;

/// The type and the class of a question.
const TYPE_AND_CLASS: u32 = 4;

/// The flags: it is an answer, its kind, it is truncated, recursion is desired, checking disabled.
const ANSWER: u16 = 0x8000;
const OPCODE: u16 = 0x7800;
const TRUNCATED: u16 = 0x0200;
const RECURSION_DESIRED: u16 = 0x0100;
const CHECKING_DISABLED: u16 = 0x0010;

/// Writes the answer; returns whether there is one. It is never longer than the query: what it
/// keeps of it is the header and the question.
#[inline(always)]
pub(super) fn write<L: Loops>(exchange: &mut Exchange, loops: &L) -> bool {
    if protocol(exchange) != UDP {
        return false;
    }
    let asked = payload_length(exchange);
    let flags = exchange.u16(FLAGS);
    if asked < HEADERS || flags & (ANSWER | OPCODE) != 0 || exchange.u16(QUESTIONS) != 1 {
        return false;
    }
    let name = loops.name_length(exchange, QUESTION);
    let length = HEADERS + name + TYPE_AND_CLASS;
    if name == 0 || length > asked || !is_good_udp(exchange, loops) {
        return false;
    }
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
        // In place of 0, which would say that there is none.
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

const _: () = assert!(
    HEADERS == UDP_HEADER + 12,
    "a DNS message has a header of 12 bytes"
);
