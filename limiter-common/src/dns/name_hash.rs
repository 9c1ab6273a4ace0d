//! The hashes of names.

#[cfg(not(target_arch = "bpf"))]
use super::Message;
use crate::{siphash::SipHash, table::HashKey};

/// The most words of a name.
const MOST_WORDS: u32 = 32;

/// A one in every byte.
const ONES: u64 = 0x0101_0101_0101_0101;

/// Returns the word with the letters `A` to `Z` in it in lower case. Lengths of labels are below all
/// letters.
#[inline(always)]
const fn folded(word: u64) -> u64 {
    const HIGH: u64 = 0x80 * ONES;
    // The upper bit of each byte: no sum of seven bits reaches the next byte.
    let low = word & !HIGH;
    let is_a_or_above = low + (0x80 - b'A' as u64) * ONES;
    let is_above_z = low + (0x7f - b'Z' as u64) * ONES;
    let is_letter = (is_a_or_above ^ is_above_z) & !word & HIGH;
    word | is_letter >> 2
}

/// Returns the keyed hash of the bytes of a message from `start` to before `end`, whole labels, with
/// letters in lower case. `word` returns the eight bytes at an offset, little endian.
#[must_use]
#[inline(always)]
pub fn hash_words(key: &HashKey, start: u32, end: u32, word: impl Fn(u32) -> u64) -> u64 {
    let length = end.wrapping_sub(start);
    let mut state = SipHash::<1, 3>::new(key.first, key.second);
    let whole = length / 8;
    // The verifier needs a constant bound.
    for number in 0..MOST_WORDS {
        if number >= whole {
            break;
        }
        state.absorb(folded(word(start + 8 * number)));
    }
    let rest = u64::from(length % 8);
    let last = folded(word(start + 8 * whole)) & ((1 << (8 * rest)) - 1);
    state.absorb(u64::from(length) << 56 | last);
    state.finish()
}

/// Returns the keyed hash of the labels of a message from `start` to before `end`.
#[must_use]
#[cfg(not(target_arch = "bpf"))]
pub fn hash_labels(message: &Message, key: &HashKey, start: u32, end: u32) -> u64 {
    hash_words(key, start, end, |at| message.le_u64(at as usize))
}

/// Returns the same hash of a name as it is on the wire, with the empty label at its end.
#[must_use]
#[cfg(not(target_arch = "bpf"))]
pub fn hash_of_name(key: &HashKey, wire: &[u8]) -> u64 {
    let length = u32::try_from(wire.len()).unwrap_or(u32::MAX);
    hash_words(key, 0, length, |at| {
        let rest = wire.get(at as usize..).unwrap_or(&[]);
        let bytes = rest.iter().zip(0..8);
        bytes.fold(0, |word, (byte, number)| {
            word | u64::from(*byte) << (8 * number)
        })
    })
}

/// Returns the number by which buckets name a zone: the same in every table and after every restart. It
/// is never 0.
///
/// The zones are the operator's, so no secret is needed.
#[must_use]
#[cfg(not(target_arch = "bpf"))]
pub fn zone_number(wire: &[u8]) -> u64 {
    hash_of_name(&HashKey::default(), wire).max(1)
}
