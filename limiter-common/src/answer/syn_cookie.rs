//! SYN cookies (RFC 4987, section 3.6): the answer to a SYN of which nothing is stored. Its sequence
//! number is a cookie, which only who gets the answer can acknowledge.
//!
//! The cookie is the network stack's own: so the listening socket takes the ACK, and no other
//! secret has to be kept.

use super::{
    Exchange, Loops,
    exchange::{IPV4, IPV4_LENGTH, IPV6, IPV6_LENGTH, TRANSPORT},
    network::{self, protocol, transport_checksum},
    transport::{
        ACK, ACKNOWLEDGED, CHECKSUM, DATA_OFFSET, FIN, RST, SEQUENCE, SYN, TCP, TCP_FLAGS,
        TCP_HEADER, URGENT, WINDOW, is_good_tcp, swap_ports, tcp_header,
    },
};
use crate::address::Family;

/// The option with the largest segment (RFC 9293, section 3.2), and its length.
const OPTION: usize = TRANSPORT + 20;
const MSS: u16 = 0x0204;

/// The header and the option.
const LENGTH: u32 = TCP_HEADER + 4;
const SIX_WORDS: u8 = 6 << 4;

/// The window until the first ACK from the socket. It is less than any socket's, so that it never
/// has to be taken back, and more than a client sends at first (RFC 6928).
const FIRST_WINDOW: u16 = 16_384;

/// What the listening socket says to a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Heard {
    /// Nobody listens; or no cookies are made, or the ACK has no valid one.
    Nothing,
    /// The socket still has room for the SYN.
    Room,
    /// The ACK has a valid cookie.
    Valid,
    /// The SYN is to be answered with a cookie.
    Cookie(Cookie),
}

/// A cookie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cookie {
    /// The sequence number of the answer.
    pub number: u32,
    /// The largest segment that the cookie encodes, in bytes: at most that of the SYN.
    pub mss: u16,
}

/// Returns whether the packet, which `exchange` has, is a right segment that can ask for a cookie
/// or bring one.
#[inline(always)]
pub(super) fn is_asked<L: Loops>(exchange: &Exchange, loops: &L) -> bool {
    let flags = exchange.byte(TCP_FLAGS) & (SYN | ACK | FIN | RST);
    protocol(exchange) == TCP && (flags == SYN || flags == ACK) && is_good_tcp(exchange, loops)
}

/// A part of the exchange's bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// The offset of its first byte.
    pub start: usize,
    /// Its length in bytes.
    pub length: u32,
}

/// The parts of a segment that the kernel's functions take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parts {
    /// The IP header.
    pub ip: Part,
    /// Both addresses and both ports, which follow each other.
    pub tuple: Part,
    /// The TCP header.
    pub tcp: Part,
}

/// Returns where the parts of the exchange's segment are.
#[must_use]
#[inline(always)]
pub fn parts(exchange: &Exchange) -> Parts {
    let part = |start, length| Part { start, length };
    let (ip, tuple) = match exchange.family() {
        Family::V4 => (
            part(TRANSPORT - IPV4, IPV4_LENGTH),
            part(TRANSPORT - 8, 8 + 4),
        ),
        Family::V6 => (
            part(TRANSPORT - IPV6, IPV6_LENGTH),
            part(TRANSPORT - 32, 32 + 4),
        ),
    };
    // The verifier does not know that this was checked.
    let tcp = part(TRANSPORT, tcp_header(exchange).max(TCP_HEADER));
    Parts { ip, tuple, tcp }
}

/// Returns whether the segment, which [`super::Written::Question`] is about, is a SYN; otherwise, it is
/// an ACK.
#[must_use]
#[inline(always)]
pub fn is_syn(exchange: &Exchange) -> bool {
    exchange.byte(TCP_FLAGS) & SYN != 0
}

/// Writes the answer to such a SYN; returns its length in bytes from the IP header on. It offers no
/// other option than the largest segment: the cookie has no room for others.
#[inline(always)]
pub fn write_syn_ack<L: Loops>(exchange: &mut Exchange, cookie: Cookie, loops: &L) -> u32 {
    let acknowledged = exchange.u32(SEQUENCE).wrapping_add(1);
    swap_ports(exchange);
    exchange.set_u32(SEQUENCE, cookie.number);
    exchange.set_u32(ACKNOWLEDGED, acknowledged);
    exchange.set_byte(DATA_OFFSET, SIX_WORDS);
    exchange.set_byte(TCP_FLAGS, SYN | ACK);
    exchange.set_u16(WINDOW, FIRST_WINDOW);
    exchange.set_u16(CHECKSUM, 0);
    exchange.set_u16(URGENT, 0);
    exchange.set_u16(OPTION, MSS);
    exchange.set_u16(OPTION + 2, cookie.mss);
    network::write(exchange, TRANSPORT, TCP, LENGTH);
    let checksum = transport_checksum(exchange, loops, TRANSPORT, TCP, LENGTH);
    exchange.set_u16(CHECKSUM, checksum);
    exchange.answer_length()
}

/// What a socket says that listens at each port and has no room, where no network stack is at hand:
/// in a trial and a replay. The cookie is made of the ports and the sequence number alone.
#[must_use]
#[inline(always)]
pub fn assumed(exchange: &Exchange) -> Heard {
    const ASSUMED_MSS: u16 = 1220;
    let sequence = exchange.u32(SEQUENCE);
    let ports = exchange.u32(TRANSPORT);
    if is_syn(exchange) {
        Heard::Cookie(Cookie {
            number: assumed_cookie(ports, sequence),
            mss: ASSUMED_MSS,
        })
    } else if exchange.u32(ACKNOWLEDGED).wrapping_sub(1)
        == assumed_cookie(ports, sequence.wrapping_sub(1))
    {
        Heard::Valid
    } else {
        Heard::Nothing
    }
}

/// Fibonacci hashing: 2^32 over the golden ratio.
#[inline(always)]
const fn assumed_cookie(ports: u32, sequence: u32) -> u32 {
    (ports ^ sequence).wrapping_mul(0x9e37_79b9)
}
