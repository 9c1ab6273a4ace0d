//! The location of a bucket in the table or the hash map.

use limiter_common::{key::BucketKey, strategy::Spend, table::Order, unit::MAX_UNITS};

/// The location of a bucket in either store, and the unit that it should count in.
#[derive(Clone, Copy, Debug)]
pub(super) struct BucketLocation {
    /// Used with the hash map only.
    pub(super) key: BucketKey,
    /// Used with the table only.
    pub(super) line: u32,
    /// With the hash map, only the number of the unit.
    pub(super) fingerprint: u64,
}

impl BucketLocation {
    /// The location of a bucket in a line of the table, by its fingerprint.
    pub(super) const fn in_line(line: u32, fingerprint: u64) -> Self {
        Self {
            key: BucketKey::NONE,
            line,
            fingerprint,
        }
    }

    /// The location of a bucket in the hash map that counts in the unit with the number `unit`.
    pub(super) fn in_hash(key: BucketKey, unit: u32) -> Self {
        Self {
            key,
            line: 0,
            fingerprint: unit.into(),
        }
    }

    /// The location of the same bucket in another unit.
    pub(super) fn in_unit(self, unit: u32) -> Self {
        let fingerprint = self.fingerprint & !u64::from(MAX_UNITS - 1) | u64::from(unit);
        Self {
            fingerprint,
            ..self
        }
    }

    pub(super) const fn order(&self) -> Order {
        Order {
            key: self.key,
            fingerprint: self.fingerprint,
            spend: Spend::NONE,
            seen: 0,
            wanted: 0,
            now_ns: 0,
            line: self.line,
            kind: 0,
        }
    }
}
