//! The Internet checksum (RFC 1071).

use super::exchange::{Exchange, HEADERS, ROOM};

/// The words of the longest packet.
const MAX_WORDS: usize = ROOM / 4;

/// Adds up words of an exchange. The kernel program makes that a function of its own, which the
/// verifier walks once and not once for each checksum.
pub trait Sum {
    /// Calls [`sum`].
    #[inline(always)]
    fn sum(&self, exchange: &Exchange, from: u32, length: u32) -> u64 {
        sum(exchange, from, length)
    }
}

/// Adds up words where they are asked for.
#[cfg(not(target_arch = "bpf"))]
#[derive(Clone, Copy, Debug)]
pub struct InlineSum;

#[cfg(not(target_arch = "bpf"))]
impl Sum for InlineSum {}

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

/// Returns the checksum for words with that sum. Of words that contain a right checksum, it is 0.
#[inline(always)]
#[expect(
    clippy::cast_possible_truncation,
    reason = "what is beyond 16 bits was added to them"
)]
pub(super) const fn checksum(sum: u64) -> u16 {
    let mut sum = sum;
    // Each step halves the bits above the lowest 16, of 48 at most.
    sum = (sum >> 32) + (sum & 0xffff_ffff);
    sum = (sum >> 16) + (sum & 0xffff);
    sum = (sum >> 16) + (sum & 0xffff);
    sum = (sum >> 16) + (sum & 0xffff);
    !(sum as u16)
}
