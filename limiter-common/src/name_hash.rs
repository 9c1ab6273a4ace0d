//! The hashes of names: multilinear hashing of pairs (Lemire and Kaser, "Strongly universal string hashing is fast",
//! 2014), done twice with separate keys. SipHash would need rotations, which BPF lacks.
//!
//! Each word of a name, from its end, is split in two halves. Each half is added to a key, and the upper half of the
//! sum of their products, modulo 2^64, is a hash. Two names chosen without knowledge of the keys share both hashes with
//! a probability of about 2^-64. Words are numbered from the end, so one pass over a name gives the sums of all its
//! suffixes.

#[cfg(not(target_arch = "bpf"))]
use crate::{siphash::SipHash, table::HashKey};

/// The most words of a name.
pub(crate) const MOST_WORDS: u32 = 32;

/// The sums over a suffix's words, one for each of the two hashes.
pub(crate) type Sums = [u64; 2];

/// The byte 1, eight times.
const ONES: u64 = 0x0101_0101_0101_0101;

const LOWER_HALF: u64 = 0xffff_ffff;

/// The secrets of the hash of names.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct NameKeys {
    /// The keys of each word, from the end: for its lower and its upper half, for each of the two hashes.
    words: [[[u64; 2]; 2]; MOST_WORDS as usize],
    /// The keys of the length, one for each hash.
    length: [u64; 2],
}

impl NameKeys {
    /// No secrets.
    pub const NONE: Self = Self {
        words: [[[0; 2]; 2]; MOST_WORDS as usize],
        length: [0; 2],
    };

    /// Derives the secrets from one key.
    #[must_use]
    #[cfg(not(target_arch = "bpf"))]
    pub fn new(key: &HashKey) -> Self {
        // Three words, a length that no other use of this key hashes; the last two name the purpose.
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

    /// A number that differs where names are numbered differently: the hash of one name, of the maximum length. It
    /// reveals nothing of the secrets.
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

/// Converts the letters `A` to `Z` in a word to lower case. Label lengths are below all letters, so they stay
/// unchanged.
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

/// The number of whole words between two offsets.
#[inline(always)]
pub(crate) const fn whole_words(start: u32, end: u32) -> u32 {
    end.wrapping_sub(start) / 8
}

/// The offset of the word with this number, counted from `end`.
#[inline(always)]
pub(crate) const fn offset(end: u32, number: u32) -> u32 {
    end.wrapping_sub(8 * (number + 1))
}

/// Adds a word to the sums; `number` counts from the end.
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

/// The keyed hash of the whole labels from `start` to before `end`, in lower case. `sums` covers their whole words.
/// `word` is the little-endian word before these; its upper bytes are the remaining bytes.
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

/// The same hash for a name in wire format, including the empty label at its end.
#[must_use]
#[cfg(not(target_arch = "bpf"))]
pub fn hash_of_name(keys: &NameKeys, wire: &[u8]) -> u64 {
    let end = u32::try_from(wire.len()).unwrap_or(u32::MAX);
    let word = |number| {
        // The bytes before the name do not matter: `finish` shifts them out.
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

/// The number by which buckets name a zone: the same in every table and after every restart, and never 0.
///
/// Zones come from the operator, so the hash needs no secret.
#[must_use]
#[cfg(not(target_arch = "bpf"))]
pub fn zone_number(wire: &[u8]) -> u64 {
    unkeyed_hash(wire).max(1)
}

/// `SipHash` 1-3, with a key of zeros, of a lower-case name in wire format.
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
