//! The loops over the bytes of an exchange.

use super::{
    Offer,
    exchange::{Exchange, HEADERS, ROOM, TRANSPORT},
    offer::offer,
};

/// The words of the longest packet.
const MAX_WORDS: usize = ROOM / 4;

const LONGEST_NAME: u32 = 255;
const LONGEST_LABEL: u8 = 63;

/// A name of 255 bytes has at most 127 labels of one byte each, and the empty label.
const MOST_LABELS: u32 = 128;

/// The record `OPT` (RFC 6891) before its options: the root's name, its type, and 8 bytes of other fields
/// that end with the length of its options.
const RECORD: u32 = 11;
const OPT: u16 = 41;

/// The option `COOKIE` (RFC 7873).
const COOKIE: u16 = 10;

/// The code and the length of an option.
const OPTION: u32 = 4;

/// The options that are checked. Resolvers send four at most.
const MOST_OPTIONS: u32 = 8;

/// The loops. The kernel's program makes each a separate function, which the verifier walks once instead of
/// once for each path that leads to it.
pub trait Loops {
    /// Calls [`sum`].
    #[inline(always)]
    fn sum(&self, exchange: &Exchange, from: u32, length: u32) -> u64 {
        sum(exchange, from, length)
    }

    /// Calls [`name_length`].
    #[inline(always)]
    fn name_length(&self, exchange: &Exchange, at: u32) -> u32 {
        name_length(exchange, at)
    }

    /// Calls [`cookie_option`].
    #[inline(always)]
    fn cookie_option(&self, exchange: &Exchange, record: u32, end: u32) -> u32 {
        cookie_option(exchange, record, end)
    }

    /// Calls [`offer`].
    #[inline(always)]
    fn offer(&self, exchange: &Exchange, first: u32) -> Offer {
        offer(exchange, first)
    }
}

/// Loops that run inline.
#[cfg(not(target_arch = "bpf"))]
#[derive(Clone, Copy, Debug)]
pub struct InlineLoops;

#[cfg(not(target_arch = "bpf"))]
impl Loops for InlineLoops {}

/// Returns the sum of the 32-bit words of `length` bytes from the offset `from` on, which is a header's and
/// a multiple of four. The last word counts only its bytes within `length`.
#[must_use]
#[inline(always)]
pub fn sum(exchange: &Exchange, from: u32, length: u32) -> u64 {
    let whole_words = length as usize / 4;
    // A mask, because the verifier needs bounds.
    let first = from as usize % HEADERS / 4;
    let mut sum = 0;
    // The verifier needs a constant bound, and would walk a branch in this loop twice as often with each
    // round.
    for number in 0..MAX_WORDS {
        if number >= whole_words {
            break;
        }
        sum += u64::from(exchange.word(first + number));
    }
    let rest = length % 4;
    // The longest packet has no rest.
    let last = exchange.word(first + whole_words % MAX_WORDS);
    // All bits of the rest's bytes; without a rest, none.
    let kept = !(u64::from(u32::MAX) >> (8 * rest));
    sum + (u64::from(last) & kept)
}

/// Returns the length of the DNS name at a header's offset, with the empty label at its end; 0: it is
/// compressed, too long or endless. It may lead beyond the packet.
#[must_use]
#[inline(always)]
pub fn name_length(exchange: &Exchange, at: u32) -> u32 {
    // A mask, because the verifier needs bounds.
    let first = at as usize % HEADERS;
    let mut length = 0;
    // The verifier needs a constant bound.
    for _ in 0..MOST_LABELS {
        if length >= LONGEST_NAME {
            return 0;
        }
        let label = exchange.byte(first + length as usize);
        length += 1;
        if label == 0 {
            return length;
        }
        if label > LONGEST_LABEL {
            return 0;
        }
        length += u32::from(label);
    }
    0
}

/// Returns the offset of the content of the first option `COOKIE` in the record `OPT`; 0: there is no such
/// record or option. The record begins at `record` and ends at `end` or before. All count from the
/// transport header.
#[must_use]
#[inline(always)]
pub fn cookie_option(exchange: &Exchange, record: u32, end: u32) -> u32 {
    let start = behind_transport(record);
    let mut at = record + RECORD;
    if at > end || exchange.byte(start) != 0 || exchange.u16(start + 1) != OPT {
        return 0;
    }
    let options_end = at + u32::from(exchange.u16(start + 9));
    if options_end > end {
        return 0;
    }
    // The verifier needs a constant bound.
    for _ in 0..MOST_OPTIONS {
        let content = at + OPTION;
        if content > options_end {
            return 0;
        }
        let option = behind_transport(at);
        let length = u32::from(exchange.u16(option + 2));
        if content + length > options_end {
            return 0;
        }
        if exchange.u16(option) == COOKIE {
            return content;
        }
        at = content + length;
    }
    0
}

/// Returns the offset that is `bytes` behind the start of the transport header. It is a mask, because the
/// verifier needs bounds.
#[inline(always)]
pub(super) const fn behind_transport(bytes: u32) -> usize {
    TRANSPORT + bytes as usize % ROOM
}
