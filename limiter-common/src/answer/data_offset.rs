//! The end of a TCP header.

use super::{Exchange, exchange::TRANSPORT};

/// The byte with the header's length in words, in its upper half.
pub(super) const DATA_OFFSET: usize = TRANSPORT + 12;

#[inline(always)]
pub(super) fn tcp_header(exchange: &Exchange) -> u32 {
    u32::from(exchange.byte(DATA_OFFSET) >> 4) * 4
}
