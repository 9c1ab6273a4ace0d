//! Count ids: each identifies one limit's count of one key's connections.

use crate::{
    key::{BucketKey, KeyFields},
    limit::{LimitId, MAX_CONNECTION_LIMITS as MOST_LIMITS},
    packet::Facts,
    packet::NameMatch,
    policy::LimitEntry,
    table::HashKey,
};

use super::count::LINES;

/// Identifies one limit's count of one key's connections by a keyed hash: its low bits select two lines, its
/// other bits are a tag. Two count ids in one line have the same tag with a chance of 2^-43. 0: no count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(transparent)]
pub struct CountId(pub u64);

/// The count ids of one connection, in the order of the policy's limits on connections.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(transparent)]
pub struct CountIds(pub [u64; MOST_LIMITS]);

/// The bits of the tag that lead from the first line to the second start here.
const STEP_BITS: u32 = 40;

/// Stands in for an interface's number, which never names the key of a connection: a connection may
/// change its interface.
pub(super) const EVERY_INTERFACE: u64 = 0;

impl CountId {
    /// The number of bits of a word below the tag: its count.
    pub(super) const COUNT_BITS: u32 = 20;

    /// The bits of a word below the tag.
    pub(super) const BELOW_TAG: u64 = (1 << Self::COUNT_BITS) - 1;

    /// The lowest bit of a tag, set in each, so that no tag is 0.
    pub(super) const LOWEST_OF_TAG: u64 = Self::BELOW_TAG + 1;

    /// Makes the count id of a key.
    #[must_use]
    #[inline(always)]
    pub const fn new(hash_key: &HashKey, key: &BucketKey) -> Self {
        let key_hash = hash_key.key_hash(key).0;
        let hash = hash_key.word_hash(key_hash ^ key.limit as u64);
        Self(hash | Self::LOWEST_OF_TAG)
    }

    /// Returns the count id of the key of a connection with these facts of incoming packets and this server
    /// name. `family` is the [`index`](crate::address::Family::index) of the source's family.
    #[must_use]
    #[inline(always)]
    pub const fn of_packet(
        hash_key: &HashKey,
        limit: &LimitEntry,
        facts: &Facts,
        subscriber: &u64,
        name_match: &NameMatch,
        family: usize,
    ) -> Self {
        let key_fields = KeyFields {
            facts,
            subscriber,
            name_match,
            interface: &EVERY_INTERFACE,
        };
        Self::new(hash_key, &limit.count(&key_fields, family))
    }

    /// Returns the count id of the connections of all sources.
    #[must_use]
    pub const fn of_total(hash_key: &HashKey, limit: LimitId) -> Self {
        Self::new(hash_key, &BucketKey::of_host(limit))
    }

    /// Returns the count id under which sources of unknown standing wait for a slot of this one.
    #[must_use]
    #[inline(always)]
    pub const fn of_unknown(self) -> Self {
        Self(self.0 ^ (1 << 63))
    }

    /// Returns the two lines of the table for the count id. Either line and the tag give the other line, so
    /// the tag needs to differ from few others.
    #[must_use]
    #[inline(always)]
    pub const fn lines(self) -> [u32; 2] {
        let first = (self.0 & Self::BELOW_TAG) as u32 & (LINES - 1);
        let step = (self.0 >> STEP_BITS) as u32 & (LINES - 1) | 1;
        [first, first ^ step]
    }

    /// The tag, at its bits of a word.
    #[inline(always)]
    pub(super) const fn tag(self) -> u64 {
        self.0 & !Self::BELOW_TAG
    }

    #[inline(always)]
    pub(super) const fn is_counted_in(self, word: u64) -> bool {
        (word ^ self.0) & !Self::BELOW_TAG == 0
    }

    /// Returns the number of connections of the count id that a word counts.
    #[inline(always)]
    pub(super) const fn count_in(self, word: u64) -> u64 {
        if self.is_counted_in(word) {
            word & Self::BELOW_TAG
        } else {
            0
        }
    }
}

impl CountIds {
    /// The count ids of a connection that no limit counts.
    pub const NONE: Self = Self([0; MOST_LIMITS]);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::address::Address;

    #[test]
    fn keys_and_limits_have_count_ids_of_their_own() {
        let key = HashKey {
            first: 1,
            second: 2,
        };
        let of = |limit, last| {
            let source = Address::v4([192, 0, 2, last]);
            CountId::new(&key, &BucketKey::of_source(LimitId(limit), source, 32))
        };
        assert_eq!(of(40, 1), of(40, 1));
        assert_ne!(of(40, 1), of(40, 2));
        assert_ne!(of(40, 1), of(41, 1));
        assert_eq!(of(40, 1).count_in(of(40, 1).tag() + 3), 3);
        assert_eq!(of(40, 1).count_in(of(40, 2).tag() + 3), 0);
        assert_eq!(of(40, 1).count_in(0), 0);
    }
}
