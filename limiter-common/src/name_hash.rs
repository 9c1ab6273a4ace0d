//! The hashes of names: multilinear hashing of pairs (Lemire and Kaser, "Strongly universal string hashing
//! is fast", 2014), twice with keys of their own, since BPF has no rotations, which SipHash is made of.
//!
//! Each word of a name, from its end, is two halves; each half is added to a key, and the sum of their
//! products, modulo 2^64, has a hash in its upper half. Two names that are chosen without the keys share
//! both by a chance of about 2^-64. Words are counted from the end, so the sums over a name's words are
//! those over the words of each of its ends, too.

#[cfg(not(target_arch = "bpf"))]
use crate::{siphash::SipHash, table::HashKey};

/// The most words of a name.
pub(crate) const MOST_WORDS: u32 = 32;

/// The sums, of each of the two hashes, over words at a name's end.
pub(crate) type Sums = [u64; 2];

/// A one in every byte.
const ONES: u64 = 0x0101_0101_0101_0101;

const LOWER_HALF: u64 = 0xffff_ffff;

/// The secrets of the hash of names.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct NameKeys {
    /// Those of each word, from the end: of its lower and its upper half, for each of the two hashes.
    words: [[[u64; 2]; 2]; MOST_WORDS as usize],
    /// Those of the length.
    length: [u64; 2],
}

impl NameKeys {
    /// No secrets.
    pub const NONE: Self = Self {
        words: [[[0; 2]; 2]; MOST_WORDS as usize],
        length: [0; 2],
    };

    /// Derives the secrets from one.
    #[must_use]
    #[cfg(not(target_arch = "bpf"))]
    pub fn new(key: &HashKey) -> Self {
        // A message of three words, as nothing else that this secret hashes: the last two say what for.
        let mut number = 0;
        let mut next = || {
            number += 1;
            key.words_hash(&[number, u64::from_le_bytes(*b"DNS name"), 0])
        };
        let mut keys = Self::NONE;
        let of_words = keys.words.as_flattened_mut().as_flattened_mut();
        for one in of_words.iter_mut().chain(&mut keys.length) {
            *one = next();
        }
        keys
    }

    /// Returns a number that differs where names are numbered otherwise: that of one name, the longest. It tells
    /// nothing of the secrets.
    #[must_use]
    #[cfg(not(target_arch = "bpf"))]
    pub fn fingerprint(&self) -> u64 {
        // Labels of zeros, each with its length: 255 bytes, so that the secrets of all words count.
        let mut name = [0; 255];
        for (start, length) in [(0, 63), (64, 63), (128, 63), (192, 61)] {
            name[start] = length;
        }
        hash_of_name(self, &name)
    }
}

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

/// Returns the number of whole words between two offsets.
#[inline(always)]
pub(crate) const fn whole_words(start: u32, end: u32) -> u32 {
    end.wrapping_sub(start) / 8
}

/// Returns the offset of a word, by its number from `end`.
#[inline(always)]
pub(crate) const fn offset(end: u32, number: u32) -> u32 {
    end.wrapping_sub(8 * (number + 1))
}

/// Returns the sums with one more word, by its number from the end.
#[inline(always)]
pub(crate) const fn with_word(keys: &NameKeys, sums: Sums, number: u32, word: u64) -> Sums {
    let word = folded(word);
    let (low, high) = (word & LOWER_HALF, word >> 32);
    let [first, second] = &keys.words[(number % MOST_WORDS) as usize];
    [
        sums[0].wrapping_add(
            low.wrapping_add(first[0])
                .wrapping_mul(high.wrapping_add(first[1])),
        ),
        sums[1].wrapping_add(
            low.wrapping_add(second[0])
                .wrapping_mul(high.wrapping_add(second[1])),
        ),
    ]
}

/// Returns the keyed hash of whole labels from `start` to before `end`, letters in lower case: of the sums
/// over their whole words, and of the word before these, little endian, whose upper bytes are the rest.
#[inline(always)]
pub(crate) fn finish(keys: &NameKeys, sums: Sums, start: u32, end: u32, word: u64) -> u64 {
    let length = end.wrapping_sub(start);
    let rest = word >> (8 * (7 - length % 8)) >> 8;
    let [first, second] = with_word(keys, sums, whole_words(start, end), rest);
    let length = u64::from(length);
    let first = first.wrapping_add(keys.length[0].wrapping_mul(length));
    let second = second.wrapping_add(keys.length[1].wrapping_mul(length));
    first >> 32 | second & !LOWER_HALF
}

/// Returns the same hash of a name as it is on the wire, with the empty label at its end.
#[must_use]
#[cfg(not(target_arch = "bpf"))]
pub fn hash_of_name(keys: &NameKeys, wire: &[u8]) -> u64 {
    let end = u32::try_from(wire.len()).unwrap_or(u32::MAX);
    let word = |number| {
        // The bytes before the name are not used.
        let (mut word, mut at) = (0, offset(end, number));
        for _ in 0..8 {
            let byte = wire.get(at as usize).copied().unwrap_or(0);
            word = word >> 8 | u64::from(byte) << 56;
            at = at.wrapping_add(1);
        }
        word
    };
    let whole = whole_words(0, end);
    let sums = (0..whole).fold([0; 2], |sums, number| {
        with_word(keys, sums, number, word(number))
    });
    finish(keys, sums, 0, end, word(whole))
}

/// Returns the number by which buckets name a zone: the same in every table and after every restart. It
/// is never 0.
///
/// The zones are the operator's, so no secret is needed.
#[must_use]
#[cfg(not(target_arch = "bpf"))]
pub fn zone_number(wire: &[u8]) -> u64 {
    unkeyed_hash(wire).max(1)
}

/// Returns `SipHash` 1-3 of a name in lower case as it is on the wire, with a key of zeros.
#[must_use]
#[cfg(not(target_arch = "bpf"))]
pub fn unkeyed_hash(wire: &[u8]) -> u64 {
    let mut state = SipHash::<1, 3>::new(0, 0);
    let (words, rest) = wire.as_chunks();
    for word in words {
        state.absorb(u64::from_le_bytes(*word));
    }
    let mut last = [0; 8];
    last[..rest.len()].copy_from_slice(rest);
    state.absorb((wire.len() as u64) << 56 | u64::from_le_bytes(last));
    state.finish()
}
