//! The loops over the bytes of an exchange.

use super::exchange::{Exchange, HEADERS, ROOM};

/// The words of the longest packet.
const MAX_WORDS: usize = ROOM / 4;

const LONGEST_NAME: u32 = 255;
const LONGEST_LABEL: u8 = 63;

/// A name of 255 bytes has at most 127 labels of one byte each, and the empty one.
const MOST_LABELS: u32 = 128;

/// The loops. The kernel's program makes each a function of its own, which the verifier walks once,
/// and not once for each path that leads to it.
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
}

/// Loops where they are asked for.
#[cfg(not(target_arch = "bpf"))]
#[derive(Clone, Copy, Debug)]
pub struct InlineLoops;

#[cfg(not(target_arch = "bpf"))]
impl Loops for InlineLoops {}

/// Returns the sum of the 32-bit words of `length` bytes from the offset `from` on, that of a
/// header and a multiple of four; of the last word, only those bytes count.
#[must_use]
#[inline(always)]
pub fn sum(exchange: &Exchange, from: u32, length: u32) -> u64 {
    let whole_words = length as usize / 4;
    // A mask, because the verifier needs bounds.
    let first = from as usize % HEADERS / 4;
    let mut sum = 0;
    // The verifier needs a constant bound, and would walk a branch in this loop twice as often with
    // each round.
    for number in 0..MAX_WORDS {
        if number >= whole_words {
            break;
        }
        sum += u64::from(exchange.word(first + number));
    }
    let rest = length % 4;
    // The longest has no rest.
    let last = exchange.word(first + whole_words % MAX_WORDS);
    // All bits of the rest's bytes; without a rest, none.
    let kept = !(u64::from(u32::MAX) >> (8 * rest));
    sum + (u64::from(last) & kept)
}

/// Returns the length of the DNS name at an offset, that of a header, with the empty label at its end; 0: it is
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
