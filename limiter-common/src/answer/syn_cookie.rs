//! SYN cookies (RFC 4987, section 3.6): the answer to a SYN, with nothing stored about it. The answer's
//! sequence number is a cookie, which only its receiver can acknowledge.
//!
//! The cookie is the network stack's own: so the listening socket takes the ACK, and no other secret is
//! needed.

use super::{
    Exchange, Loops, Offer, ServerOptions,
    exchange::{IPV4, IPV4_LENGTH, IPV6, IPV6_LENGTH, TRANSPORT},
    network::{self, protocol, transport_checksum},
    transport::{
        ACK, ACKNOWLEDGED, CHECKSUM, DATA_OFFSET, FIN, RST, SEQUENCE, SYN, TCP, TCP_FLAGS,
        TCP_HEADER, URGENT, WINDOW, is_good_tcp, swap_ports, tcp_header,
    },
};
use crate::address::Family;

/// The options by their kinds and lengths, in Linux's order: the largest segment (RFC 9293, section 3.2);
/// selective acknowledgements or a gap, then timestamps; a gap, then the window scale.
const OPTIONS: usize = TRANSPORT + 20;
const MSS: u16 = 0x0204;
const SACK_PERMITTED: u16 = 0x0402;
const GAP: u16 = 0x0101;
const TIMESTAMPS: u16 = 0x080a;
const GAP_AND_SCALE: u16 = 0x0103;
const LENGTH_OF_SCALE: u8 = 3;

/// The lengths of the header with the first group, of the second group, and of the last.
const SHORTEST: u32 = TCP_HEADER + 4;
const WITH_TIMESTAMPS: u32 = 12;
const WITH_SCALE: u32 = 4;

/// The bits of a timestamp with the options of the SYN's sender, as the network stack decodes them (linux:
/// `cookie_timestamp_decode`): its window scale, or all ones for none, and its selective acknowledgements.
/// The bit above them is for congestion notifications, which are not offered.
const KEPT: u32 = (1 << 6) - 1;
const KEPT_NO_SCALE: u32 = 0xf;
const KEPT_SACK: u32 = 1 << 4;

/// The window until the first ACK from the socket. It is less than any socket's, so that it never has to
/// shrink, and more than a client sends at first (RFC 6928).
const FIRST_WINDOW: u16 = 16_384;

/// The listening socket's reply about a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListenerReply {
    /// No socket listens; or it makes no cookies, or the ACK has no valid one.
    Nothing,
    /// The socket still has room for the SYN; or it does not listen, but belongs to an earlier connection
    /// with these ports, which only the network stack can end.
    Room,
    /// The ACK has a valid cookie.
    Valid,
    /// Answer the SYN with a cookie.
    Cookie(Cookie),
}

/// A cookie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cookie {
    /// The sequence number of the answer.
    pub number: u32,
    /// The largest segment that the cookie encodes, in bytes: at most the SYN's.
    pub mss: u16,
    /// The other options that are kept of the connection.
    pub kept: ServerOptions,
}

/// Whether the packet in `exchange` is a valid segment that can ask for a cookie or bring one.
#[inline(always)]
pub(super) fn is_syn_or_ack<L: Loops>(exchange: &Exchange, loops: &L) -> bool {
    let flags = exchange.byte(TCP_FLAGS) & (SYN | ACK | FIN | RST);
    protocol(exchange) == TCP && (flags == SYN || flags == ACK) && is_good_tcp(exchange, loops)
}

/// Whether the network stack can check the SYN cookie of the exchange's segment. The checksum is ignored,
/// since a virtual device may leave it to be computed.
#[must_use]
#[inline(always)]
pub fn is_plain_segment(exchange: &Exchange) -> bool {
    let header = tcp_header(exchange);
    network::is_whole(exchange)
        && protocol(exchange) == TCP
        && header >= TCP_HEADER
        && header <= network::payload_length(exchange)
}

/// A mask above the length of the options in bytes.
const MOST_OPTIONS: u32 = 63;

/// A part of the exchange's bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// The offset of its first byte.
    pub start: usize,
    /// Its length in bytes.
    pub length: u32,
}

/// The parts of a segment for the kernel's functions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parts {
    /// The IP header.
    pub ip: Part,
    /// Both addresses and both ports, adjacent.
    pub tuple: Part,
    /// The TCP header.
    pub tcp: Part,
}

/// Returns the parts of the exchange's segment.
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
    // At least 20 bytes, as checked before. The verifier learns it by arithmetic: Linux 6.1's forgets the
    // result of a comparison once the value is copied.
    let options = tcp_header(exchange).wrapping_sub(TCP_HEADER) & MOST_OPTIONS;
    let tcp = part(TRANSPORT, TCP_HEADER + options);
    Parts { ip, tuple, tcp }
}

/// Whether the segment of a [`super::WriteOutcome::Question`] is a SYN; otherwise, it is an ACK.
#[must_use]
#[inline(always)]
pub fn is_syn(exchange: &Exchange) -> bool {
    exchange.byte(TCP_FLAGS) & SYN != 0
}

/// Writes the answer to such a SYN; returns its length in bytes from the IP header on. Apart from the
/// largest segment, it has only options that the SYN has. `clock_ms` is the network stack's clock in
/// milliseconds.
#[inline(always)]
pub fn write_syn_ack<L: Loops>(
    exchange: &mut Exchange,
    cookie: Cookie,
    clock_ms: u32,
    loops: &L,
) -> u32 {
    let offer = if cookie.kept.has_timestamps() {
        loops.offer(exchange, TCP_HEADER)
    } else {
        Offer::NOTHING
    };
    let acknowledged = exchange.u32(SEQUENCE).wrapping_add(1);
    swap_ports(exchange);
    exchange.set_u32(SEQUENCE, cookie.number);
    exchange.set_u32(ACKNOWLEDGED, acknowledged);
    exchange.set_byte(TCP_FLAGS, SYN | ACK);
    exchange.set_u16(WINDOW, FIRST_WINDOW);
    exchange.set_u16(CHECKSUM, 0);
    exchange.set_u16(URGENT, 0);
    exchange.set_u16(OPTIONS, MSS);
    exchange.set_u16(OPTIONS + 2, cookie.mss);
    let length = SHORTEST + write_kept(exchange, offer, cookie.kept, clock_ms);
    exchange.set_byte(DATA_OFFSET, words(length));
    network::write(exchange, TRANSPORT, TCP, length);
    let checksum = transport_checksum(exchange, loops, TRANSPORT, TCP, length);
    exchange.set_u16(CHECKSUM, checksum);
    exchange.answer_length()
}

/// Writes the options that are both offered and kept; returns their length in bytes. Without timestamps, it
/// writes none.
#[inline(always)]
fn write_kept(exchange: &mut Exchange, offer: Offer, kept: ServerOptions, clock_ms: u32) -> u32 {
    const AT: usize = OPTIONS + 4;
    let Some(echo) = offer.timestamp() else {
        return 0;
    };
    let has_sack = offer.has_sack() && kept.has_sack();
    // Both directions scale their windows, or neither.
    let scales = match (offer.window_scale(), kept.window_scale()) {
        (Some(theirs), Some(own)) => Some((theirs, own)),
        _ => None,
    };
    let bits = match scales {
        Some((theirs, _)) => u32::from(theirs),
        None => KEPT_NO_SCALE,
    } | if has_sack { KEPT_SACK } else { 0 };
    exchange.set_u16(AT, if has_sack { SACK_PERMITTED } else { GAP });
    exchange.set_u16(AT + 2, TIMESTAMPS);
    exchange.set_u32(AT + 4, timestamp(clock_ms, bits));
    exchange.set_u32(AT + 8, echo);
    let Some((_, own)) = scales else {
        return WITH_TIMESTAMPS;
    };
    exchange.set_u16(AT + 12, GAP_AND_SCALE);
    exchange.set_byte(AT + 14, LENGTH_OF_SCALE);
    exchange.set_byte(AT + 15, own);
    WITH_TIMESTAMPS + WITH_SCALE
}

/// Returns the last timestamp with these low bits that is not in the future: the network stack's later
/// segments must not carry earlier timestamps (linux: `cookie_init_timestamp`).
#[inline(always)]
const fn timestamp(clock_ms: u32, bits: u32) -> u32 {
    let step = if bits > clock_ms & KEPT { KEPT + 1 } else { 0 };
    (clock_ms & !KEPT | bits).wrapping_sub(step)
}

/// Returns the header's length as in its field: in words, in the upper half of a byte.
#[inline(always)]
#[expect(
    clippy::cast_possible_truncation,
    reason = "a header is at most 60 bytes long"
)]
const fn words(length: u32) -> u8 {
    (length << 2) as u8
}

/// The assumed state of listening sockets where there is no network stack.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AssumedSocket {
    /// They have no room for SYNs.
    #[default]
    Full,
    /// They have room.
    HasRoom,
}

/// Returns the reply of an assumed socket that listens at each port, for trials and replays without a
/// network stack. The cookie depends only on the ports and the sequence number. All options are kept, so
/// that answers have the maximum length.
#[must_use]
#[inline(always)]
pub fn assumed(exchange: &Exchange, socket: AssumedSocket) -> ListenerReply {
    const ASSUMED_MSS: u16 = 1220;
    const ASSUMED_KEPT: ServerOptions = ServerOptions::new(true, Some(7));
    let sequence = exchange.u32(SEQUENCE);
    let ports = exchange.u32(TRANSPORT);
    if is_syn(exchange) {
        match socket {
            AssumedSocket::HasRoom => ListenerReply::Room,
            AssumedSocket::Full => ListenerReply::Cookie(Cookie {
                number: assumed_cookie(ports, sequence),
                mss: ASSUMED_MSS,
                kept: ASSUMED_KEPT,
            }),
        }
    } else if exchange.u32(ACKNOWLEDGED).wrapping_sub(1)
        == assumed_cookie(ports, sequence.wrapping_sub(1))
    {
        ListenerReply::Valid
    } else {
        ListenerReply::Nothing
    }
}

/// Fibonacci hashing: 2^32 over the golden ratio.
#[inline(always)]
const fn assumed_cookie(ports: u32, sequence: u32) -> u32 {
    (ports ^ sequence).wrapping_mul(0x9e37_79b9)
}
