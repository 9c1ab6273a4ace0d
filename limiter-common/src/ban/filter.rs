//! A Bloom filter with one hash function in front of the bans (Bloom, "Space/Time Trade-offs in Hash Coding
//! with Allowable Errors", 1970). Most sources are not banned, and a look-up in a large hash map costs more
//! memory accesses than the rest of the decision.

use super::BanKey;

/// The number of bits for each ban that there is room for. With a full table, one source in sixteen is
/// looked up in vain.
pub const BITS_PER_BAN: u32 = 16;

/// The number of words before the bits: a [`Filter`], then padding, so that the bits begin at a cache line.
pub const HEADER_WORDS: u32 = 8;

/// Finds the bit of a prefix.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Filter {
    /// The hash's secret, two odd numbers: no attacker can choose addresses that are looked up in vain.
    pub factors: [u64; 2],
    /// The number of words of bits, which is a power of two, less one; 0: there is no filter.
    pub mask: u64,
}

impl Filter {
    /// Returns the number of words in a filter for `capacity` bans, including the words before the bits.
    #[must_use]
    pub const fn words(capacity: u32) -> u32 {
        let words = (capacity as u64 * BITS_PER_BAN as u64).div_ceil(64);
        #[expect(
            clippy::cast_possible_truncation,
            reason = "a quarter of a 32-bit number"
        )]
        let words = words as u32;
        let words = if words < 2 { 2 } else { words };
        HEADER_WORDS + words.next_power_of_two()
    }

    /// Returns the word of a prefix's bit, and the bit.
    ///
    /// It multiplies (Dietzfelbinger et al., "A Reliable Randomized Algorithm for the Closest-Pair
    /// Problem", 1997), then once more to spread the upper bits. That costs less than SipHash, and
    /// suffices, as the hash only has to avoid vain look-ups.
    #[must_use]
    #[inline(always)]
    #[expect(clippy::cast_possible_truncation, reason = "the mask has 32 bits")]
    pub const fn bit_of(&self, ban: &BanKey) -> (u32, u64) {
        const SPREAD: u64 = 0xd6e8_feb8_6659_fd93;
        let (shape, high, low) = ban.words();
        let [first, second] = self.factors;
        let sum = high
            .wrapping_mul(first)
            .wrapping_add(low.wrapping_mul(second))
            .wrapping_add(shape.wrapping_mul(SPREAD));
        let hash = (sum ^ sum >> 32).wrapping_mul(SPREAD);
        let hash = hash ^ hash >> 32;
        let word = HEADER_WORDS + ((hash >> 6) & self.mask) as u32;
        (word, 1 << (hash & 63))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::address::Address;

    #[test]
    fn sizes() {
        assert_eq!(Filter::words(1), HEADER_WORDS + 2);
        assert_eq!(Filter::words(1024), HEADER_WORDS + 256);
        assert_eq!(Filter::words(1025), HEADER_WORDS + 512);
        assert_eq!(Filter::words(512 * 1024), HEADER_WORDS + 128 * 1024);
    }

    #[test]
    fn positions_are_in_the_filter_and_spread() {
        let filter = Filter {
            factors: [0x9e37_79b9_7f4a_7c15, 0xbf58_476d_1ce4_e5b9],
            mask: 255,
        };
        let mut words = [0_u64; 256];
        for last in 0..=255 {
            let ban = BanKey::new(&Address::v4([192, 0, 2, last]), 32);
            let (word, bit) = filter.bit_of(&ban);
            words[(word - HEADER_WORDS) as usize] |= bit;
        }
        let bits: u32 = words.iter().map(|word| word.count_ones()).sum();
        // About two of 256 bits collide among 16 384.
        assert!((240..=256).contains(&bits), "{bits}");
    }

    #[test]
    fn prefixes_of_one_address_have_positions_of_their_own() {
        let filter = Filter {
            factors: [0x9e37_79b9_7f4a_7c15, 0xbf58_476d_1ce4_e5b9],
            mask: u64::from(u32::MAX >> 4),
        };
        let zeroes = Address::v4([0; 4]);
        let bit_of = |length| filter.bit_of(&BanKey::new(&zeroes, length));
        assert_ne!(bit_of(24), bit_of(32));
        let v6 = Address::v6([0; 8], [0; 8]);
        assert_ne!(bit_of(32), filter.bit_of(&BanKey::new(&v6, 32)));
    }
}
