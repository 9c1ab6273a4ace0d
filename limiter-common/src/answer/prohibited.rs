//! The ICMP error "administratively prohibited" (RFC 792 and RFC 1812, RFC 4443).

use super::{
    Exchange, Loops, MORE_BYTES, SHORTEST_FRAME,
    exchange::{IPV4, IPV4_LENGTH, IPV6, IPV6_LENGTH, TRANSPORT},
    network::{self, length, plain_checksum, protocol, transport_checksum},
    transport::{
        ICMP, ICMP_HEADER, ICMPV6, SOURCE_PORT, TCP, UDP, is_good_icmp, is_good_tcp, is_good_udp,
    },
};
use crate::address::Family;

/// Destination unreachable: communication administratively prohibited.
const UNREACHABLE_V4: u16 = 0x030d;
const UNREACHABLE_V6: u16 = 0x0101;

/// Echo requests are the only messages of ICMP that get an error.
const ECHO_V4: u8 = 8;
const ECHO_V6: u8 = 128;

/// The bytes of a quoted packet behind its IP header that its sender needs to find the socket.
const QUOTED: u32 = 8;

/// The longest packet that every IPv6 link carries (RFC 4443, section 2.4).
const SHORTEST_MTU: u32 = 1280;

/// The source port of responses to the host's own DNS queries.
const DNS: u16 = 53;

/// The offset of the error's header: directly before the quoted packet.
const HEADER_V4: usize = TRANSPORT - IPV4 - ICMP_HEADER as usize;
const HEADER_V6: usize = TRANSPORT - IPV6 - ICMP_HEADER as usize;

/// Writes the answer; returns whether there is one.
#[inline(always)]
pub(super) fn write<L: Loops>(exchange: &mut Exchange, loops: &L) -> bool {
    if !is_good(exchange, loops) {
        return false;
    }
    let most = longest_answer(exchange);
    match exchange.family() {
        Family::V4 => {
            const QUOTE: u32 = IPV4_LENGTH + QUOTED;
            const LENGTH: u32 = ICMP_HEADER + QUOTE;
            if most < IPV4_LENGTH + LENGTH {
                return false;
            }
            write_header(exchange, HEADER_V4, UNREACHABLE_V4);
            network::write(exchange, HEADER_V4, ICMP, LENGTH);
            let checksum = plain_checksum(exchange, loops, HEADER_V4, LENGTH);
            exchange.set_u16(HEADER_V4 + 2, checksum);
        }
        Family::V6 => {
            const HEADERS: u32 = IPV6_LENGTH + ICMP_HEADER;
            const SHORTEST: u32 = HEADERS + IPV6_LENGTH + QUOTED;
            if most < SHORTEST {
                return false;
            }
            let quote = length(exchange).min(most - HEADERS);
            let length = ICMP_HEADER + quote;
            write_header(exchange, HEADER_V6, UNREACHABLE_V6);
            network::write(exchange, HEADER_V6, ICMPV6, length);
            let checksum = transport_checksum(exchange, loops, HEADER_V6, ICMPV6, length);
            exchange.set_u16(HEADER_V6 + 2, checksum);
        }
    }
    true
}

#[inline(always)]
fn longest_answer(exchange: &Exchange) -> u32 {
    let link = exchange.link_length();
    // Needless padding does not count.
    let asked = (link + length(exchange)).max(SHORTEST_FRAME);
    (asked + MORE_BYTES).saturating_sub(link).min(SHORTEST_MTU)
}

/// Whether the packet may get an ICMP error: it is valid, and neither an error nor an answer itself.
#[inline(always)]
fn is_good<L: Loops>(exchange: &Exchange, loops: &L) -> bool {
    match (exchange.family(), protocol(exchange)) {
        (_, TCP) => is_good_tcp(exchange, loops),
        (_, UDP) => exchange.u16(SOURCE_PORT) != DNS && is_good_udp(exchange, loops),
        (Family::V4, ICMP) => exchange.byte(TRANSPORT) == ECHO_V4 && is_good_icmp(exchange, loops),
        (Family::V6, ICMPV6) => {
            exchange.byte(TRANSPORT) == ECHO_V6 && is_good_icmp(exchange, loops)
        }
        _ => false,
    }
}

/// Writes the error's header, with the checksum 0.
#[inline(always)]
fn write_header(exchange: &mut Exchange, at: usize, kind_and_code: u16) {
    exchange.set_u16(at, kind_and_code);
    exchange.set_u16(at + 2, 0);
    exchange.set_u32(at + 4, 0);
}
