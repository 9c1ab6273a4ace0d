//! Bans: addresses and ranges that are dropped until a time.
//!
//! They are in a hash map by prefix. A source is looked up under each prefix length that any ban has. These
//! are few: most hosts ban addresses and IPv6 /64s. The look-up is exact, allows any number of changes
//! while packets arrive, and costs nothing without bans. A filter with one bit for each ban spares nearly
//! every other source the look-up: with half a million bans and 16 million sources it costs some 100 ns,
//! not 376 (with SipHash as its hash, 160). An LPM trie takes ten times as long.
//!
//! Several origins may ban one prefix. The ban that ends last is at [`BanKey::FRONT`], the only position that
//! packets look at; the others are in the same map at the positions behind it. Their dropped packets are
//! counted once for the prefix.

mod filter;
mod hits;
mod text;

pub use self::{
    filter::{BITS_PER_BAN, Filter, HEADER_WORDS},
    hits::{BanMatch, Hits},
    text::{BanText, MAX_TEXT},
};
use crate::address::{Address, Family};

/// The number of words of prefix lengths. Bit `n` of the first word stands for IPv4 prefixes of
/// `n + 1` bits; of the second and third, for IPv6 prefixes of `n + 1` and of `n + 65` bits.
pub const LENGTH_WORDS: u32 = 3;

/// The end of a ban that holds until it is lifted.
pub const FOREVER: u64 = u64::MAX;

/// Names one ban: a prefix, and a position among its bans.
///
/// Every byte is defined and there is no padding: the kernel hashes the key as bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(C, align(8))]
pub struct BanKey {
    /// The IP version.
    family: u16,
    /// At least 1: no ban covers all addresses.
    prefix_length: u16,
    /// The position among the prefix's bans.
    position: u32,
    /// The first address in network byte order, IPv4 in the first four bytes.
    address: [[u8; 8]; 2],
}

const _: () = assert!(size_of::<BanKey>() == 24, "no padding in a hashed key");

impl BanKey {
    /// The position of the ban that ends last, by which packets are judged.
    pub const FRONT: u32 = 0;

    /// Returns the prefix of that length that contains an address, at the front.
    #[must_use]
    #[inline(always)]
    pub const fn new(address: &Address, prefix_length: u8) -> Self {
        let first = address.masked(prefix_length);
        Self {
            family: first.family as u16,
            prefix_length: prefix_length as u16,
            position: Self::FRONT,
            address: [first.high.to_be_bytes(), first.low.to_be_bytes()],
        }
    }

    /// Returns the prefix of an address with the [length bit](Self::length_bit) `bit` of `word`.
    ///
    /// It has no branch, because the verifier would walk both sides for each length.
    #[inline(always)]
    #[expect(clippy::cast_possible_truncation, reason = "up to 128")]
    const fn of_bit(address: &Address, word: u32, bit: u32) -> Self {
        let bit = bit & 63;
        let leading = u64::MAX << (63 - bit);
        // All ones if the prefix includes the whole first half of the address.
        let whole = (word as u64 >> 1).wrapping_neg();
        let high = address.high & (leading | whole);
        let low = address.low & leading & whole;
        Self {
            family: address.family as u16,
            prefix_length: (bit + 1 + (whole & 64) as u32) as u16,
            position: Self::FRONT,
            address: [high.to_be_bytes(), low.to_be_bytes()],
        }
    }

    /// The key as three words: the family with the length, and both halves of the address.
    #[inline(always)]
    const fn words(&self) -> (u64, u64, u64) {
        let [high, low] = self.address;
        let shape = (self.family as u64) << 16 | self.prefix_length as u64;
        (shape, u64::from_be_bytes(high), u64::from_be_bytes(low))
    }

    /// The prefix's first address.
    #[must_use]
    pub const fn address(&self) -> Address {
        let [high, low] = self.address;
        if self.family == Family::V4 as u16 {
            Address::v4([high[0], high[1], high[2], high[3]])
        } else {
            Address::v6(high, low)
        }
    }

    /// Returns the key of the same prefix at another position.
    #[must_use]
    pub const fn at(self, position: u32) -> Self {
        Self { position, ..self }
    }

    /// The position among the prefix's bans.
    #[must_use]
    pub const fn position(&self) -> u32 {
        self.position
    }

    /// The prefix's length in bits.
    #[must_use]
    pub const fn prefix_length(&self) -> u16 {
        self.prefix_length
    }

    /// Returns the word of this prefix's length, and its bit there.
    #[must_use]
    pub const fn length_bit(&self) -> (u32, u64) {
        let bit = self.prefix_length.saturating_sub(1) as u32;
        if self.family == Family::V4 as u16 {
            (0, 1 << (bit & 31))
        } else {
            (1 + ((bit >> 6) & 1), 1 << (bit & 63))
        }
    }
}

/// A ban. The datapath reads only its end; the rest is for people.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Ban {
    /// Its end, in nanoseconds of the decision's clock; [`FOREVER`]: it holds until lifted.
    pub until_ns: u64,
    /// Its start, in nanoseconds of the decision's clock; a time before that clock's zero, such as before a
    /// boot, wraps.
    pub since_ns: u64,
    /// The number of times that its origin has banned the prefix, including this ban.
    pub times: u16,
    /// The interned id of the limit that caused the ban; [`Self::BY_HAND`]: no limit did.
    pub limit: u16,
    /// The reason, and the origin if it was neither a limit nor the operator.
    pub text: BanText,
}

const _: () = assert!(size_of::<Ban>() == 24 + MAX_TEXT, "no padding");

impl Ban {
    /// Stands in for a limit: no limit caused the ban.
    pub const BY_HAND: u16 = u16::MAX;

    /// Stands in for a limit of another fleet node that this node does not have.
    pub const ELSEWHERE: u16 = Self::BY_HAND - 1;

    /// Whether a limit caused the ban.
    #[must_use]
    pub const fn is_automatic(&self) -> bool {
        self.limit != Self::BY_HAND
    }

    /// Whether two bans have the same origin. All limits together are one origin.
    #[must_use]
    pub fn is_of_origin_of(&self, other: &Self) -> bool {
        if self.is_automatic() || other.is_automatic() {
            return self.is_automatic() && other.is_automatic();
        }
        self.text.origin() == other.text.origin()
    }

    /// Whether the ban holds at `now_ns`, in nanoseconds of the decision's clock.
    #[must_use]
    #[inline(always)]
    pub const fn holds(&self, now_ns: u64) -> bool {
        now_ns < self.until_ns
    }
}

/// Look-ups of bans.
pub trait BanLookup {
    /// The prefix lengths that any ban has, as a word of bits: see [`LENGTH_WORDS`].
    fn lengths(&self, word: u32) -> u64;
    /// Whether that prefix may be banned; always true if it is.
    fn may_have(&self, key: &BanKey) -> bool;
    /// The end of that prefix's ban, in nanoseconds; `None`: there is no ban.
    fn until(&self, key: &BanKey) -> Option<u64>;
}

/// Returns the words of a family's prefix lengths.
///
/// The bound is a constant and the words are computed without a branch, so the verifier walks the loop's
/// body twice, not once for each word of each family.
#[inline(always)]
fn words(family: Family) -> impl Iterator<Item = u32> {
    let number = family.number();
    (0..2)
        .take_while(move |step| *step <= number)
        .map(move |step| number + step)
}

/// Whether any address of that family may be banned.
#[inline(always)]
pub fn any<B: BanLookup>(bans: &B, family: Family) -> bool {
    words(family).fold(0, |any, word| any | bans.lengths(word)) != 0
}

/// Returns the ban of a source at the time that `now_ns` returns; of several, the widest prefix's. Calls
/// `now_ns` only if there is such a ban.
#[inline(always)]
pub fn banned_as<B: BanLookup>(bans: &B, source: &Address, now_ns: impl Fn() -> u64) -> BanMatch {
    for word in words(source.family) {
        let mut lengths = bans.lengths(word);
        // The verifier needs a constant bound.
        for _ in 0..u64::BITS {
            if lengths == 0 {
                break;
            }
            let key = BanKey::of_bit(source, word, lengths.trailing_zeros());
            lengths &= lengths - 1;
            if bans.may_have(&key)
                && let Some(until_ns) = bans.until(&key)
                && now_ns() < until_ns
            {
                return BanMatch::of_length(u32::from(key.prefix_length));
            }
        }
    }
    BanMatch::NOT
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_tell_their_prefix() {
        let v4 = Address::v4([192, 0, 2, 77]);
        let v6 = Address::v6([0x20, 1, 0xd, 0xb8, 0, 1, 0, 2], [3; 8]);
        for (address, length) in [(v4, 1), (v4, 24), (v4, 32), (v6, 48), (v6, 65), (v6, 128)] {
            let key = BanKey::new(&address, length);
            assert_eq!(key.address(), address.masked(length));
            assert_eq!(key.prefix_length(), length.into());
            assert_eq!(key.position(), BanKey::FRONT);
            let behind = key.at(3);
            assert_eq!((behind.position(), behind.address()), (3, key.address()));
            assert_ne!(behind, key);
            assert_eq!(behind.at(BanKey::FRONT), key);
        }
        // An IPv6 address with the IPv4 address as its first four bytes.
        let twin = Address::v6([192, 0, 2, 77, 0, 0, 0, 0], [0; 8]);
        assert_ne!(BanKey::new(&v4, 32), BanKey::new(&twin, 32));
    }

    #[test]
    fn every_length_has_a_bit_of_its_own() {
        let bit = |address, length| BanKey::new(&address, length).length_bit();
        let v4 = Address::v4([0; 4]);
        let v6 = Address::v6([0; 8], [0; 8]);
        assert_eq!(bit(v4, 1), (0, 1));
        assert_eq!(bit(v4, 32), (0, 1 << 31));
        assert_eq!(bit(v6, 1), (1, 1));
        assert_eq!(bit(v6, 64), (1, 1 << 63));
        assert_eq!(bit(v6, 65), (2, 1));
        assert_eq!(bit(v6, 128), (2, 1 << 63));
        let all = |address: Address, longest| (1..=longest).map(move |length| (address, length));
        let v4 = Address::v4([255; 4]);
        let v6 = Address::v6([255; 8], [255; 8]);
        for (address, length) in all(v4, 32).chain(all(v6, 128)) {
            let key = BanKey::new(&address, length);
            let (word, bit) = key.length_bit();
            assert_eq!(BanKey::of_bit(&address, word, bit.trailing_zeros()), key);
        }
    }
}
