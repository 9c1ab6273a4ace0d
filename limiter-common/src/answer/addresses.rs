//! The addresses between which answers may be sent.

use super::{
    Exchange,
    exchange::{IPV4, IPV6, TRANSPORT},
};
use crate::address::Family;

/// The bit of an Ethernet group address.
const GROUP: u8 = 1;

const ETHERNET_SOURCE: usize = 6;

/// The source address, counted back from the transport header; the destination follows it.
const IPV4_SOURCE: usize = TRANSPORT - IPV4 + 12;
const IPV6_SOURCE: usize = TRANSPORT - IPV6 + 8;

/// Whether a packet goes from one host to another, and either may have sent it.
#[inline(always)]
pub(super) fn may_be_answered(exchange: &Exchange) -> bool {
    let ethernet = exchange.ethernet();
    if (ethernet[0] | ethernet[ETHERNET_SOURCE]) & GROUP != 0 {
        return false;
    }
    match exchange.family() {
        Family::V4 => are_unicast_v4(exchange.u32(IPV4_SOURCE), exchange.u32(IPV4_SOURCE + 4)),
        Family::V6 => {
            let address = |at| {
                let half = |at| u64::from(exchange.u32(at)) << 32 | u64::from(exchange.u32(at + 4));
                [half(at), half(at + 8)]
            };
            are_unicast_v6(address(IPV6_SOURCE), address(IPV6_SOURCE + 16))
        }
    }
}

#[inline(always)]
const fn are_unicast_v4(source: u32, destination: u32) -> bool {
    is_unicast_v4(source)
        && is_unicast_v4(destination)
        && source != destination
        && is_of_link_v4(source) == is_of_link_v4(destination)
}

/// Whether a single host may have the address: not 0.0.0.0/8, loopback, multicast, reserved or broadcast.
#[inline(always)]
const fn is_unicast_v4(address: u32) -> bool {
    let first = address >> 24;
    first != 0 && first != 127 && first < 224
}

/// 169.254.0.0/16 (RFC 3927): an answer must not lead from a link to elsewhere.
#[inline(always)]
const fn is_of_link_v4(address: u32) -> bool {
    address >> 16 == 0xa9fe
}

#[inline(always)]
const fn are_unicast_v6(source: [u64; 2], destination: [u64; 2]) -> bool {
    is_unicast_v6(source)
        && is_unicast_v6(destination)
        && (source[0] != destination[0] || source[1] != destination[1])
        && is_of_link_v6(source) == is_of_link_v6(destination)
}

/// Whether a single host may have the address: not multicast, and not of `::/64`, which has the unspecified
/// address, loopback and the IPv4-mapped addresses.
#[inline(always)]
const fn is_unicast_v6([high, _]: [u64; 2]) -> bool {
    high != 0 && high >> 56 != 0xff
}

/// fe80::/10 (RFC 4291).
#[inline(always)]
const fn is_of_link_v6([high, _]: [u64; 2]) -> bool {
    high >> 54 == 0xfe80 >> 6
}
