//! The Internet checksum (RFC 1071).

use super::exchange::{Exchange, ROOM};

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

/// Returns the sum of the 32-bit words of `length` bytes from the offset `from` on, a multiple of
/// four; of the last word, only those bytes count.
#[must_use]
#[inline(always)]
pub fn sum(exchange: &Exchange, from: u32, length: u32) -> u64 {
    let (first, length) = (from as usize / 4, length as usize);
    let mut sum = 0;
    // The verifier needs a constant bound.
    for number in 0..MAX_WORDS {
        let before = number * 4;
        if before >= length {
            break;
        }
        let word = exchange.word(first + number);
        let left = length - before;
        let kept = if left < 4 {
            word & !(u32::MAX >> (8 * left))
        } else {
            word
        };
        sum += u64::from(kept);
    }
    sum
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
