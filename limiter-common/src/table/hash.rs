//! SipHash-1-3 of a bucket's key or of a source: one round a word and three at the end, as in
//! Rust's and Linux's hash tables.

use crate::{
    key::BucketKey,
    limit::{FIRST_CUSTOM_ID, LimitId},
    siphash::SipHash,
};

/// The hash function of tables.
type State = SipHash<1, 3>;

/// The secret of one table: random, and drawn anew for each. Write it only to files that only root
/// can read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[repr(C)]
pub struct HashKey {
    /// The first half.
    pub first: u64,
    /// The second half.
    pub second: u64,
}

/// The hash of a bucket's key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyHash(pub u64);

impl KeyHash {
    /// The line of a limit's buckets in a table of `lines` lines, a power of two up to 2^24.
    ///
    /// The index uses the low bits, which [`super::fingerprint`] leaves out. Two limits of one
    /// key share a line, which leaves half of it for others; the next two limits have another
    /// line.
    #[must_use]
    #[inline(always)]
    pub const fn line(self, limit: LimitId, lines: u32) -> u32 {
        ((self.0 & 0x00ff_ffff) as u32 ^ group(limit)) & lines.wrapping_sub(1)
    }
}

/// The group of limits that share a line: packets and bytes, new connections alone, and custom
/// limits in pairs.
#[inline(always)]
const fn group(limit: LimitId) -> u32 {
    let id = limit.0 as u32;
    if id >= FIRST_CUSTOM_ID as u32 {
        2 + (id - FIRST_CUSTOM_ID as u32) / 2
    } else {
        const NEW_CONNECTIONS: u32 = 1 << 5 | 1 << 6 | 1 << 9 | 1 << 12;
        NEW_CONNECTIONS >> id & 1
    }
}

impl KeyHash {
    /// The hash of a part of this bucket: it has its own tag, and another line, shared with the
    /// next part. `part` is a [`BucketKey::part`]; the hash may be incomplete.
    ///
    /// All parts of one bucket have different tags. In a table of 64 lines or more, all pairs of
    /// the first 128 parts have different lines, because their lowest bits differ. With enough
    /// lines, the parts of limits of other groups have other lines too: groups differ only in the
    /// lowest seven bits, and pairs also in the next ones.
    #[must_use]
    #[inline(always)]
    pub const fn of_part(self, part: u64) -> Self {
        let pair = part.div_ceil(2);
        Self(self.0 ^ part << 32 ^ pair << 7 ^ pair)
    }
}

impl HashKey {
    /// The hash of a bucket or of its part. It covers the key's kind, prefix length and id, but
    /// not the limit.
    #[must_use]
    #[inline(always)]
    pub const fn key_hash(&self, key: &BucketKey) -> KeyHash {
        let (shape, id) = key.key_words();
        self.whole_key_hash(shape, id).of_part(key.part() as u64)
    }

    /// The hash of a whole bucket, from the [words](BucketKey::key_words) of its key.
    #[must_use]
    #[inline(always)]
    pub(crate) const fn whole_key_hash(&self, shape: u64, [high, low]: [u64; 2]) -> KeyHash {
        let mut state = State::new(self.first, self.second);
        // The last word has the length in its upper byte, to tell messages of different lengths
        // apart. The shape has three bytes: with an IPv4 address it fits into the last word.
        let mut last = 7 << 56 | shape << 32 | high >> 32;
        if high << 32 | low != 0 {
            state.absorb(high);
            last = 16 << 56 | shape;
            if low != 0 {
                state.absorb(low);
                last = 24 << 56 | shape;
            }
        }
        state.absorb(last);
        KeyHash(state.finish())
    }

    /// The hash of eight bytes, such as a source. Keys' messages are longer, so their hashes are
    /// independent.
    #[must_use]
    #[inline(always)]
    pub const fn word_hash(&self, word: u64) -> u64 {
        self.words_hash(&[word])
    }

    /// The hash of some words. Not of two: a key's message may have two.
    #[must_use]
    #[inline(always)]
    pub const fn words_hash<const WORDS: usize>(&self, words: &[u64; WORDS]) -> u64 {
        const { assert!(WORDS == 1 || WORDS > 2, "keys have two words") };
        let mut state = State::new(self.first, self.second);
        let mut index = 0;
        while index < WORDS {
            state.absorb(words[index]);
            index += 1;
        }
        state.absorb((WORDS as u64 * 8) << 56);
        state.finish()
    }
}

#[cfg(test)]
mod tests {
    extern crate std;

    use std::{
        collections::HashMap,
        hash::{DefaultHasher, Hasher as _},
    };

    use super::*;
    use crate::{address::Address, strategy::moving_window::STAMPS};

    /// The standard library's hasher is the same function, with a key of zeros.
    #[test]
    fn a_words_hash_is_siphash() {
        for word in [0, 1, 0xffff_ffff_c000_0201, u64::MAX] {
            let mut hasher = DefaultHasher::new();
            hasher.write(&word.to_le_bytes());
            assert_eq!(HashKey::default().word_hash(word), hasher.finish());
        }
    }

    /// Even in the smallest tables, so that a log's parts do not evict each other.
    #[test]
    fn a_log_has_two_parts_to_a_line() {
        let bucket = BucketKey::of_source(LimitId(40), Address::v4([192, 0, 2, 1]), 32);
        for bits in 6..=24 {
            let mut lines = HashMap::<u32, u64>::new();
            for number in 0..STAMPS {
                let hash = HashKey::default().key_hash(&bucket.of_part(number));
                *lines.entry(hash.line(LimitId(40), 1 << bits)).or_default() += 1;
            }
            assert_eq!(lines.len() as u64, STAMPS / 2, "2^{bits} lines");
            assert!(lines.values().all(|stamps| *stamps == 2));
        }
    }
}
