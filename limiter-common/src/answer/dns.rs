//! The DNS message of a query over UDP (RFC 1035), and the end of its question.

use super::{
    Exchange, Loops,
    exchange::{TRANSPORT, offset},
    network::{payload_length, protocol},
    transport::{UDP, UDP_HEADER},
};

/// The offsets of the message's fields.
pub(super) const FLAGS: usize = TRANSPORT + 10;
pub(super) const QUESTIONS: usize = TRANSPORT + 12;
pub(super) const ANSWERS: usize = TRANSPORT + 14;
pub(super) const AUTHORITIES: usize = TRANSPORT + 16;
pub(super) const ADDITIONAL: usize = TRANSPORT + 18;
const QUESTION: u32 = offset(TRANSPORT + 20);

/// The length of the UDP header plus the message's header.
const HEADERS: u32 = 20;

/// The type and the class of a question.
const TYPE_AND_CLASS: u32 = 4;

/// The flag of a response, and the flags of the kind.
pub(super) const ANSWER: u16 = 0x8000;
const OPCODE: u16 = 0x7800;

/// Returns the length of a query with one question, from the UDP header to the question's end; 0: the
/// packet, with a valid IP header, is no such query.
#[inline(always)]
pub(super) fn question_end<L: Loops>(exchange: &Exchange, loops: &L) -> u32 {
    if protocol(exchange) != UDP {
        return 0;
    }
    let asked = payload_length(exchange);
    let flags = exchange.u16(FLAGS);
    if asked < HEADERS || flags & (ANSWER | OPCODE) != 0 || exchange.u16(QUESTIONS) != 1 {
        return 0;
    }
    let name = loops.name_length(exchange, QUESTION);
    let length = HEADERS + name + TYPE_AND_CLASS;
    if name == 0 || length > asked {
        return 0;
    }
    length
}

const _: () = assert!(
    HEADERS == UDP_HEADER + 12,
    "a DNS message has a header of 12 bytes"
);
