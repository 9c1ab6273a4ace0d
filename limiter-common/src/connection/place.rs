//! Where the connections of an owner are counted, and which limits have no room for another.

use crate::{
    judged::Packet,
    limit::{LimitId, MAX_CONNECTION_LIMITS as MOST_LIMITS},
    owner::{BucketKey, OwnerFields},
    packet::Facts,
    policy::{Class, LimitEntry, Tables, classify, matching, parameters_of},
    table::HashKey,
    verdict::Verdict,
};

use super::{Ends, count::LINES};

/// Where the connections of one owner by one limit are counted: two lines by the low bits, and a tag by
/// the others, of a keyed hash. Two owners of one line have the same tag by a chance of 2^-43. 0:
/// nowhere.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(transparent)]
pub struct Place(pub u64);

/// The places of one connection, in the order of the policy's limits on connections.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(transparent)]
pub struct Places(pub [u64; MOST_LIMITS]);

/// The bits of the tag that say where the second line is begin here.
const STEP_BITS: u32 = 40;

/// In place of an interface's number: a connection may change its interface.
const EVERY_INTERFACE: u32 = 0;

impl Place {
    /// The number of bits of a word below the tag, which are its count.
    pub(super) const COUNT_BITS: u32 = 20;

    /// The bits of a word below the tag.
    pub(super) const BELOW_TAG: u64 = (1 << Self::COUNT_BITS) - 1;

    /// The lowest bit of a tag, which each has, so that no tag is 0.
    pub(super) const LOWEST_OF_TAG: u64 = Self::BELOW_TAG + 1;

    /// Returns the place of an owner.
    #[must_use]
    #[inline(always)]
    pub const fn new(hash_key: &HashKey, key: &BucketKey) -> Self {
        let owner = hash_key.owner_hash(key).0;
        let hash = hash_key.word_hash(owner ^ key.limit as u64);
        Self(hash | Self::LOWEST_OF_TAG)
    }

    /// Returns the place of the owner by a limit of a connection whose incoming packets have these
    /// facts. `family` is the [`index`](crate::address::Family::index) of that of the source.
    #[must_use]
    #[inline(always)]
    pub const fn of_packet(
        hash_key: &HashKey,
        limit: &LimitEntry,
        facts: &Facts,
        subscriber: &u64,
        family: usize,
    ) -> Self {
        let owner_fields = OwnerFields {
            facts,
            subscriber,
            interface: &EVERY_INTERFACE,
        };
        Self::new(hash_key, &limit.bucket(&owner_fields, family))
    }

    /// Returns the place of the connections of all sources.
    #[must_use]
    pub const fn of_total(hash_key: &HashKey, limit: LimitId) -> Self {
        Self::new(hash_key, &BucketKey::of_interface(limit, EVERY_INTERFACE))
    }

    /// Returns the place at which those of unknown standing wait for this one.
    #[must_use]
    #[inline(always)]
    pub const fn of_unknown(self) -> Self {
        Self(self.0 ^ (1 << 63))
    }

    /// Returns the two lines of the table in which the place may be. Which two they are follows from
    /// either of them and the tag: so the tag needs to differ from few others.
    #[must_use]
    #[inline(always)]
    pub const fn lines(self) -> [u32; 2] {
        let first = (self.0 & Self::BELOW_TAG) as u32 & (LINES - 1);
        let step = (self.0 >> STEP_BITS) as u32 & (LINES - 1) | 1;
        [first, first ^ step]
    }

    /// Returns the tag, in its bits of a word.
    #[inline(always)]
    pub(super) const fn tag(self) -> u64 {
        self.0 & !Self::BELOW_TAG
    }

    /// Returns whether a word is for connections of the place.
    #[inline(always)]
    pub(super) const fn is_counted_in(self, word: u64) -> bool {
        (word ^ self.0) & !Self::BELOW_TAG == 0
    }

    /// Returns how many connections of the place a word counts.
    #[inline(always)]
    pub(super) const fn count_in(self, word: u64) -> u64 {
        if self.is_counted_in(word) {
            word & Self::BELOW_TAG
        } else {
            0
        }
    }
}

impl Places {
    /// Those of a connection that no limit counts.
    pub const NONE: Self = Self([0; MOST_LIMITS]);
}

/// Fills in where a connection is to be counted; `places` are none so far.
#[inline(always)]
pub fn find_places<T: Tables>(tables: &T, ends: &Ends, places: &mut Places) {
    let facts = ends.facts();
    let shape = tables.shape();
    let Some(class) = classify(tables, &facts.source) else {
        return;
    };
    if class.listed() == Class::EXCLUDED {
        return;
    }
    let matched = matching(tables, &facts, class);
    let family = (tables.opaque(facts.source.family.index() as u64) & 1) as usize;
    let mut rest = shape.connections;
    for place in &mut places.0 {
        if rest == 0 {
            break;
        }
        let limit_index = rest.trailing_zeros();
        rest &= rest.wrapping_sub(1);
        let Some(limit) = tables.limit(limit_index) else {
            // The policy compiler rules this out.
            return;
        };
        let found = Place::of_packet(&shape.hash_key, limit, &facts, &class.subscriber, family);
        // Not a branch: the verifier would walk each set of limits.
        let is_counted = tables.opaque(matched >> limit_index & 1);
        *place = found.0 & 0u64.wrapping_sub(is_counted);
    }
}

/// Returns those of the limits on connections in the verdict, which count the packet, that have no room
/// for another connection of its source. `open` says how many are open at a place.
#[inline(always)]
pub fn full<T: Tables>(
    tables: &T,
    packet: &Packet,
    verdict: &Verdict,
    open: impl Fn(Place) -> u64,
) -> u64 {
    let shape = tables.shape();
    // The verifier knows nothing of it from the start, and so walks each round once.
    let mut full = tables.opaque(0);
    let mut rest = shape.connections;
    for _ in 0..MOST_LIMITS {
        if rest == 0 {
            break;
        }
        let limit_index = rest.trailing_zeros();
        rest &= rest.wrapping_sub(1);
        if verdict.matched >> limit_index & 1 == 0 {
            continue;
        }
        let place = place_at(tables, packet, limit_index);
        let most = most_at(tables, packet, limit_index, verdict);
        let (Some(place), Some(most)) = (place, most) else {
            continue;
        };
        let is_full = u64::from(open(place) >= most);
        full |= tables.opaque(is_full) << limit_index;
    }
    full
}

/// Returns where the connections of the packet's owner are counted by the limit at an index, if it counts
/// the packet.
#[inline(always)]
pub fn place_at<T: Tables>(tables: &T, packet: &Packet, limit_index: u32) -> Option<Place> {
    let Packet { facts, class, .. } = packet;
    let limit = tables.limit(limit_index)?;
    let family = (tables.opaque(facts.source.family.index() as u64) & 1) as usize;
    let hash_key = &tables.shape().hash_key;
    let subscriber = &class.subscriber;
    Some(Place::of_packet(hash_key, limit, facts, subscriber, family))
}

/// Returns how many connections that owner may have open, so that one more of the packet's source, whose
/// standing the verdict says, is let in below them. What is reserved is for others.
#[inline(always)]
pub(super) fn most_at<T: Tables>(
    tables: &T,
    packet: &Packet,
    limit_index: u32,
    verdict: &Verdict,
) -> Option<u64> {
    let parameters = parameters_of(tables, &packet.class, limit_index)?;
    let mut most = parameters.connections();
    if tables.shape().reserving_places >> limit_index & 1 != 0 {
        let reserves = tables.reserves(packet.class.rate_index(limit_index))?;
        most = most.saturating_sub(reserves.from_number(verdict.standing_number()));
    }
    // The verifier walks what follows once, not once for each way to find it.
    Some(tables.opaque(most))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::address::Address;

    #[test]
    fn owners_and_limits_have_places_of_their_own() {
        let key = HashKey {
            first: 1,
            second: 2,
        };
        let of = |limit, last| {
            let source = Address::v4([192, 0, 2, last]);
            Place::new(&key, &BucketKey::of_source(LimitId(limit), source, 32))
        };
        assert_eq!(of(40, 1), of(40, 1));
        assert_ne!(of(40, 1), of(40, 2));
        assert_ne!(of(40, 1), of(41, 1));
        assert_eq!(of(40, 1).count_in(of(40, 1).tag() + 3), 3);
        assert_eq!(of(40, 1).count_in(of(40, 2).tag() + 3), 0);
        assert_eq!(of(40, 1).count_in(0), 0);
    }
}
