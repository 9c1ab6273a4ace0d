//! The IP header of a packet that may get an answer, and the answer's IP header.

use super::{
    Exchange, Loops,
    checksum::checksum,
    exchange::{IPV4, IPV4_LENGTH, IPV6, IPV6_LENGTH, ROOM, TRANSPORT, offset},
};
use crate::address::Family;

/// The version, and a header of five words: without options.
const VERSION_4: u8 = 0x45;
const VERSION_6: u8 = 6;

/// The whole field except the reserved bit and the bit for "don't fragment".
const FRAGMENT: u16 = 0x3fff;
const DONT_FRAGMENT: u16 = 0x4000;

/// RFC 1700; every router on the way subtracts one.
const TTL: u8 = 64;

/// Whether the IP header is valid, has no options, and its packet is whole: no fragment, not cut short, not
/// too long.
#[inline(always)]
pub(super) fn is_whole(exchange: &Exchange) -> bool {
    let start = Exchange::start_of(exchange.family());
    let version = exchange.byte(start);
    let length = length(exchange);
    if length > exchange.packet_length() || length as usize > ROOM {
        return false;
    }
    match exchange.family() {
        Family::V4 => {
            version == VERSION_4
                && length as usize >= IPV4
                && exchange.u16(start + 6) & FRAGMENT == 0
                && checksum(ipv4_sum(exchange, start)) == 0
        }
        // Extension headers are protocols without answers.
        Family::V6 => version >> 4 == VERSION_6,
    }
}

/// Returns the length of the packet from its header.
#[inline(always)]
pub(super) fn length(exchange: &Exchange) -> u32 {
    let start = Exchange::start_of(exchange.family());
    match exchange.family() {
        Family::V4 => u32::from(exchange.u16(start + 2)),
        Family::V6 => IPV6_LENGTH + u32::from(exchange.u16(start + 4)),
    }
}

#[inline(always)]
pub(super) fn payload_length(exchange: &Exchange) -> u32 {
    match exchange.family() {
        Family::V4 => length(exchange).saturating_sub(IPV4_LENGTH),
        Family::V6 => u32::from(exchange.u16(TRANSPORT - IPV6 + 4)),
    }
}

#[inline(always)]
pub(super) fn protocol(exchange: &Exchange) -> u8 {
    match exchange.family() {
        Family::V4 => exchange.byte(TRANSPORT - IPV4 + 9),
        Family::V6 => exchange.byte(TRANSPORT - IPV6 + 6),
    }
}

/// Returns the checksum over the pseudo-header, from the IP header that ends at `end`, and over `length`
/// bytes of that protocol behind it.
#[inline(always)]
pub(super) fn transport_checksum<L: Loops>(
    exchange: &Exchange,
    loops: &L,
    end: usize,
    protocol: u8,
    length: u32,
) -> u16 {
    let addresses = match exchange.family() {
        Family::V4 => 8,
        Family::V6 => 32,
    };
    let mut sum = loops.sum(exchange, offset(end), length);
    for number in 0..8 {
        let before = number * 4;
        if before < addresses {
            sum += u64::from(exchange.u32(end - addresses + before));
        }
    }
    checksum(sum + u64::from(protocol) + u64::from(length))
}

#[inline(always)]
pub(super) fn plain_checksum<L: Loops>(
    exchange: &Exchange,
    loops: &L,
    from: usize,
    length: u32,
) -> u16 {
    checksum(loops.sum(exchange, offset(from), length))
}

/// Writes the answer's IP header before the offset `end`, for `length` bytes of that protocol, from the
/// packet's destination to its source; records the position of the answer.
#[inline(always)]
pub(super) fn write(exchange: &mut Exchange, end: usize, protocol: u8, length: u32) {
    exchange.swap_ethernet();
    match exchange.family() {
        Family::V4 => write_ipv4(exchange, end, protocol, length),
        Family::V6 => write_ipv6(exchange, end, protocol, length),
    }
}

#[inline(always)]
#[expect(
    clippy::cast_possible_truncation,
    reason = "an answer is at most a little longer than what it answers, some 2000 bytes"
)]
fn write_ipv4(exchange: &mut Exchange, end: usize, protocol: u8, length: u32) {
    const SOURCE: usize = TRANSPORT - 8;
    const DESTINATION: usize = TRANSPORT - 4;
    let (source, destination) = (exchange.u32(DESTINATION), exchange.u32(SOURCE));
    let start = end - IPV4;
    let total = IPV4_LENGTH + length;
    exchange.set_u16(start, u16::from(VERSION_4) << 8);
    exchange.set_u16(start + 2, total as u16);
    exchange.set_u16(start + 4, 0);
    exchange.set_u16(start + 6, DONT_FRAGMENT);
    exchange.set_byte(start + 8, TTL);
    exchange.set_byte(start + 9, protocol);
    exchange.set_u16(start + 10, 0);
    exchange.set_u32(start + 12, source);
    exchange.set_u32(start + 16, destination);
    exchange.set_u16(start + 10, checksum(ipv4_sum(exchange, start)));
    exchange.set_answer(start, total);
}

#[inline(always)]
#[expect(
    clippy::cast_possible_truncation,
    reason = "an answer is at most a little longer than what it answers, some 2000 bytes"
)]
fn write_ipv6(exchange: &mut Exchange, end: usize, protocol: u8, length: u32) {
    const SOURCE: usize = TRANSPORT - 32;
    const DESTINATION: usize = TRANSPORT - 16;
    let start = end - IPV6;
    exchange.set_u32(start, u32::from(VERSION_6) << 28);
    exchange.set_u16(start + 4, length as u16);
    exchange.set_byte(start + 6, protocol);
    exchange.set_byte(start + 7, TTL);
    for number in 0..4 {
        let before = number * 4;
        let source = exchange.u32(DESTINATION + before);
        let destination = exchange.u32(SOURCE + before);
        exchange.set_u32(start + 8 + before, source);
        exchange.set_u32(start + 24 + before, destination);
    }
    exchange.set_answer(start, IPV6_LENGTH + length);
}

#[inline(always)]
fn ipv4_sum(exchange: &Exchange, start: usize) -> u64 {
    let mut sum = 0;
    for number in 0..IPV4 / 4 {
        sum += u64::from(exchange.u32(start + number * 4));
    }
    sum
}
