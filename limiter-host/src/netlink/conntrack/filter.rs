//! A socket filter that lets only events of assured TCP connections through: a flood of SYNs would otherwise
//! fill the socket's buffer.

use socket2::SockFilter;

use super::{
    message::HEADER as OF_SUBSYSTEM,
    tracked::{ASSURED, NUMBER, ORIGINAL, PROTOCOL, STATUS, TCP},
};
use crate::netlink::HEADER;

/// The offset of an event's first attribute.
#[expect(clippy::cast_possible_truncation, reason = "it is 20")]
const ATTRIBUTES: u32 = (HEADER + OF_SUBSYSTEM) as u32;

/// `BPF_LD | BPF_IMM` and `BPF_LDX | BPF_IMM`: load a number into A, or X.
const LOAD: u16 = 0;
const LOAD_X: u16 = 1;
/// `BPF_LD | BPF_W | BPF_ABS`: calls one of the extensions below, by its negative offset.
const CALL: u16 = 0x20;
/// `BPF_MISC | BPF_TAX`: copies A to X.
const COPY_TO_X: u16 = 7;
/// `BPF_LD | BPF_W | BPF_IND` and `BPF_B`: load the word in network byte order, or the byte, at X plus an
/// offset.
const LOAD_WORD: u16 = 0x40;
const LOAD_BYTE: u16 = 0x50;
/// `BPF_JMP | BPF_JEQ` and `BPF_JSET`.
const IF_EQUAL: u16 = 0x15;
const IF_ANY_BIT: u16 = 0x45;
/// `BPF_RET | BPF_K`.
const RETURN: u16 = 6;

/// `SKF_AD_OFF + SKF_AD_NLATTR` and `SKF_AD_NLATTR_NEST`: put the offset of the attribute of type X into A; 0:
/// there is none. Before the call, A holds the offset of the first attribute, or of the containing attribute.
const FIND: u32 = (-0x1000_i32 + 12).cast_unsigned();
const FIND_WITHIN: u32 = (-0x1000_i32 + 16).cast_unsigned();

/// The length of an attribute's header.
const ATTRIBUTE: u32 = 4;

/// The index of the step that drops an event.
const DROP: u8 = 20;

/// Accepts events of TCP connections with packets seen both ways.
pub(super) const ASSURED_TCP: [SockFilter; 22] = [
    step(LOAD, ATTRIBUTES),
    step(LOAD_X, STATUS as u32),
    step(CALL, FIND),
    drop_if_nowhere(3),
    step(COPY_TO_X, 0),
    step(LOAD_WORD, ATTRIBUTE),
    SockFilter::new(IF_ANY_BIT, 0, DROP - 7, ASSURED),
    step(LOAD, ATTRIBUTES),
    step(LOAD_X, ORIGINAL as u32),
    step(CALL, FIND),
    drop_if_nowhere(10),
    step(LOAD_X, PROTOCOL as u32),
    step(CALL, FIND_WITHIN),
    drop_if_nowhere(13),
    step(LOAD_X, NUMBER as u32),
    step(CALL, FIND_WITHIN),
    drop_if_nowhere(16),
    step(COPY_TO_X, 0),
    step(LOAD_BYTE, ATTRIBUTE),
    SockFilter::new(IF_EQUAL, 1, 0, TCP as u32),
    step(RETURN, 0),
    step(RETURN, u32::MAX),
];

const fn step(code: u16, number: u32) -> SockFilter {
    SockFilter::new(code, 0, 0, number)
}

/// Drops the event if A is 0. `at`: the index of this step.
const fn drop_if_nowhere(at: u8) -> SockFilter {
    SockFilter::new(IF_EQUAL, DROP - at - 1, 0, 0)
}
