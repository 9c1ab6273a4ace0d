//! One limit as the datapath reads it.

use crate::{
    address::Family,
    answer::Answer,
    key::{BucketKey, KeyFields, KeyMapping},
    limit::{Cost, IdFormat, KeyPart, LimitId, NameKind},
    packet::{Facts, NameMatch},
    standing::Standing,
    strategy::gcra::{CurrentRate, Parts},
};

/// One limit as the datapath reads it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct LimitEntry {
    /// The interned id.
    pub id: u16,
    /// [`PACKETS`] or [`BYTES`].
    cost: u8,
    /// The source of the key's name: a [`KeyPart`] as its discriminant; 0: the source's address.
    key_part: u8,
    /// The emission interval at the ceiling of an automatic rate, in nanoseconds; 0: the rate is
    /// not automatic.
    interval_of_ceiling: u32,
    /// The fields of a packet that name the bucket's key, by [`Family::index`] of the source.
    keys: [KeyMapping; 2],
    /// The numbers of the answers to refused packets, by the number of the source's standing; the
    /// entries behind the standings are for sources with no standing looked up.
    answers: [u8; ANSWERS],
    /// One in so many refused packets gets a truncated answer.
    slip: u32,
    /// The least [`Parts`] of a shared limit's budget for each node of the fleet; 0: the limit is
    /// not shared.
    minimum_share: u32,
    /// The interned id of the limit that keeps its count of connections: its own, or the first of
    /// its group.
    counted_as: u64,
}

/// A power of two above the numbers of standings, so that any number has an answer.
const ANSWERS: usize = 8;

/// One token per packet: every matching packet, or every packet that opens a connection.
const PACKETS: u8 = 0;
/// One token per byte.
const BYTES: u8 = 1;

impl LimitEntry {
    /// Makes the entry of a limit.
    #[must_use]
    pub const fn new(id: LimitId, id_format: IdFormat, cost: Cost) -> Self {
        Self::of_names(id, id_format, id_format.name_kind(), cost)
    }

    /// Makes the entry of a limit with a bucket for each name of a kind, or with names alone as
    /// keys.
    #[must_use]
    pub const fn of_names(
        id: LimitId,
        id_format: IdFormat,
        name_kind: Option<NameKind>,
        cost: Cost,
    ) -> Self {
        let key_part = match (id_format.key_part(), cost) {
            // A connection belongs to no interface.
            (Some(KeyPart::Interface), Cost::Connections | Cost::Handshakes) => Some(KeyPart::Host),
            (key_part, _) => key_part,
        };
        Self {
            id: id.0,
            cost: match cost {
                Cost::Packets
                | Cost::NewConnections
                | Cost::Connections
                | Cost::Handshakes
                | Cost::NewNames => PACKETS,
                Cost::Bytes => BYTES,
            },
            key_part: match key_part {
                Some(key_part) => key_part as u8,
                None => 0,
            },
            interval_of_ceiling: 0,
            keys: [
                KeyMapping::new(id_format, key_part, name_kind, Family::V4),
                KeyMapping::new(id_format, key_part, name_kind, Family::V6),
            ],
            answers: [Answer::Drop as u8; ANSWERS],
            slip: 1,
            minimum_share: 0,
            counted_as: id.0 as u64,
        }
    }

    /// Returns the entry with answers to sources of each standing, in the order of standings, and to
    /// sources without a look-up of their standing.
    #[must_use]
    pub const fn with_answers(
        self,
        of_standings: [Answer; Standing::COUNT],
        other: Answer,
        slip: u8,
    ) -> Self {
        let [proven, familiar, fresh, retried, unknown] = of_standings;
        let other = other as u8;
        Self {
            answers: [
                proven as u8,
                familiar as u8,
                fresh as u8,
                retried as u8,
                unknown as u8,
                other,
                other,
                other,
            ],
            slip: slip as u32,
            ..self
        }
    }

    /// Returns the answer to a refused packet, by the number of its source's standing.
    #[must_use]
    #[inline(always)]
    pub const fn answer_to(&self, standing: u32) -> Answer {
        Answer::of_number(self.answers[standing as usize % ANSWERS] as u32)
    }

    /// One in so many refused packets gets a truncated answer.
    #[must_use]
    #[inline(always)]
    pub const fn slip(&self) -> u64 {
        self.slip as u64
    }

    /// Returns the entry with an automatic rate that has at least this emission interval, in
    /// nanoseconds.
    #[must_use]
    pub const fn with_interval_of_ceiling(self, interval_of_ceiling: u32) -> Self {
        Self {
            interval_of_ceiling,
            ..self
        }
    }

    /// Returns the entry, for a limit on all sources together, with one bucket for all interfaces
    /// instead of one for each.
    #[must_use]
    pub const fn of_host(self) -> Self {
        const BY: Option<KeyPart> = Some(KeyPart::Host);
        Self {
            key_part: KeyPart::Host as u8,
            keys: [
                KeyMapping::new(IdFormat::Total, BY, None, Family::V4),
                KeyMapping::new(IdFormat::Total, BY, None, Family::V6),
            ],
            ..self
        }
    }

    /// Returns the emission interval in force at the time `now_ns`, in nanoseconds, for an
    /// automatic rate. `rate` is the current rate, and `of_floor` the interval at its floor.
    #[must_use]
    #[inline(always)]
    pub const fn interval_in_force(&self, rate: CurrentRate, of_floor: u64, now_ns: u64) -> u64 {
        let of_ceiling = self.interval_of_ceiling as u64;
        rate.interval(now_ns, of_ceiling, of_floor)
    }

    /// Returns the entry as a shared limit, with at least the `minimum_share` for each node of the fleet.
    #[must_use]
    pub const fn with_minimum_share(self, minimum_share: Parts) -> Self {
        Self {
            minimum_share: minimum_share.number(),
            ..self
        }
    }

    /// Returns the share in force of a shared limit's budget: the key's own, but never less than
    /// the minimum share.
    #[must_use]
    #[inline(always)]
    pub const fn share_in_force(&self, own: Option<Parts>) -> Parts {
        let Some(minimum_share) = Parts::new(self.minimum_share) else {
            // The policy compiler rules this out.
            return Parts::LEAST;
        };
        match own {
            Some(own) => own.or_larger(minimum_share),
            None => minimum_share,
        }
    }

    /// Returns the bucket for a packet with the facts `key_fields`. `family` is the
    /// [`Family::index`] of the source; it is an argument so that its value can be hidden from the
    /// kernel's verifier.
    #[must_use]
    #[inline(always)]
    pub const fn bucket(&self, key_fields: &KeyFields<'_>, family: usize) -> BucketKey {
        self.keys[family & 1].key(LimitId(self.id), self.key_part, key_fields)
    }

    /// Returns the kind and number of the packet's name that owns a bucket, or `None` if no name
    /// does.
    #[must_use]
    #[inline(always)]
    pub const fn name(&self, name_match: &NameMatch) -> Option<(KeyPart, u64)> {
        match KeyPart::of_number(self.key_part) {
            Some(KeyPart::ServerName) => Some((KeyPart::ServerName, name_match.zone)),
            // Both families have the same name kind.
            _ => match self.keys[0].name_kind() {
                Some(NameKind::Zone) => Some((KeyPart::Zone, name_match.zone)),
                Some(NameKind::Domain) => Some((KeyPart::Domain, name_match.domain)),
                Some(NameKind::Question) => Some((KeyPart::Question, name_match.question)),
                None => None,
            },
        }
    }

    /// Whether each destination has a bucket.
    #[must_use]
    pub const fn is_of_destinations(&self) -> bool {
        self.key_part == KeyPart::Destination as u8
    }

    /// Returns the entry for a limit that shares its count of connections with `first`.
    #[must_use]
    pub const fn counted_as(self, first: LimitId) -> Self {
        Self {
            counted_as: first.0 as u64,
            ..self
        }
    }

    /// Returns the limit that keeps its count of connections: itself, or the first of its group.
    #[must_use]
    #[inline(always)]
    #[expect(
        clippy::cast_possible_truncation,
        reason = "an interned id has 16 bits"
    )]
    pub const fn counted_with(&self) -> LimitId {
        LimitId(self.counted_as as u16)
    }

    /// Returns the key that a packet's connection counts for, in the form of a bucket. `family`:
    /// as for [`Self::bucket`].
    #[must_use]
    #[inline(always)]
    pub const fn count(&self, key_fields: &KeyFields<'_>, family: usize) -> BucketKey {
        self.keys[family & 1].key(self.counted_with(), self.key_part, key_fields)
    }

    /// Returns the tokens that a packet costs if the limit counts it.
    #[must_use]
    #[inline(always)]
    pub const fn cost_of(&self, facts: &Facts) -> u64 {
        match self.cost {
            BYTES => facts.length as u64,
            _ => facts.packets as u64,
        }
    }
}
