//! The name of a bucket: its limit and its key.

use super::{Key, KeyKind};
use crate::{
    address::{Address, Family},
    limit::{KeyPart, LimitId, NameKind},
};

/// Identifies one bucket: the limit, and the key.
///
/// Every byte is defined and there is no padding, because the kernel hashes the key as bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(C, align(8))]
pub struct BucketKey {
    /// The limit's interned id.
    pub limit: u16,
    /// The number of a part of the bucket, from 1; 0: the bucket itself.
    part: u16,
    kind: KeyKind,
    /// In network byte order: the masked address, with IPv4 in the first four bytes; or a number in the first eight. A
    /// name's number is in the last eight.
    id: [[u8; 8]; 2],
}

const _: () = assert!(size_of::<BucketKey>() == 24, "no padding in a hashed key");

impl Default for BucketKey {
    fn default() -> Self {
        Self::NONE
    }
}

impl BucketKey {
    /// The key of no bucket.
    pub const NONE: Self = Self::new(LimitId(0), KeyKind::NONE, 0, 0);

    /// The bucket of `limit` for a key of `kind`; bits unused by the kind must be 0.
    #[must_use]
    #[inline(always)]
    pub const fn new(limit: LimitId, kind: KeyKind, high: u64, low: u64) -> Self {
        Self {
            limit: limit.0,
            part: 0,
            kind,
            id: [high.to_be_bytes(), low.to_be_bytes()],
        }
    }

    /// The bucket of `limit` for the first `prefix_length` bits of `address`.
    #[must_use]
    pub const fn of_source(limit: LimitId, address: Address, prefix_length: u8) -> Self {
        let Address { family, high, low } = address.masked(prefix_length);
        Self::new(limit, KeyKind::of_range(family, prefix_length), high, low)
    }

    /// The bucket of `limit` for a key that is a number.
    #[must_use]
    pub const fn of_number(limit: LimitId, of: KeyPart, number: u64) -> Self {
        let kind = KeyKind::of_number(of);
        match of.name_kind() {
            Some(_) => Self::new(limit, kind, 0, number),
            None => Self::new(limit, kind, number, 0),
        }
    }

    /// This key's bucket for the name with this number. The key must be a subscriber, or an address or range of at
    /// most 64 bits.
    #[must_use]
    pub const fn with_name(self, name_kind: NameKind, number: u64) -> Self {
        Self {
            kind: self.kind.with_name(name_kind),
            id: [self.id[0], number.to_be_bytes()],
            ..self
        }
    }

    /// The kind and number of the name beside the key; `None`: the bucket is for all names, or its key is a name.
    #[must_use]
    pub const fn name(&self) -> Option<(NameKind, u64)> {
        match self.kind.name_kind() {
            Some(name_kind) => Some((name_kind, u64::from_be_bytes(self.id[1]))),
            None => None,
        }
    }

    /// The bucket of `limit` for all packets to an address.
    #[must_use]
    pub const fn of_destination(limit: LimitId, destination: Address) -> Self {
        let kind = KeyKind::of_destination(destination.family);
        Self::new(limit, kind, destination.high, destination.low)
    }

    /// The bucket of `limit` for a subscriber.
    #[must_use]
    pub const fn of_subscriber(limit: LimitId, subscriber: u64) -> Self {
        Self::of_number(limit, KeyPart::Subscriber, subscriber)
    }

    /// The bucket of `limit` for all packets of an interface.
    #[must_use]
    pub const fn of_interface(limit: LimitId, interface: u32) -> Self {
        Self::of_number(limit, KeyPart::Interface, interface as u64)
    }

    /// The bucket of `limit` for all packets of all interfaces.
    #[must_use]
    pub const fn of_host(limit: LimitId) -> Self {
        Self::of_number(limit, KeyPart::Host, 0)
    }

    /// The same key's bucket of another limit.
    #[must_use]
    pub const fn of_limit(self, limit: LimitId) -> Self {
        Self {
            limit: limit.0,
            ..self
        }
    }

    /// A part of this bucket; `number` must be below 65 535. A moving window has a part for each stamp of its log.
    #[must_use]
    #[inline(always)]
    #[expect(
        clippy::cast_possible_truncation,
        reason = "parts have numbers of 16 bits"
    )]
    pub const fn of_part(mut self, number: u64) -> Self {
        self.part = (number as u16).wrapping_add(1);
        self
    }

    /// The part's number plus 1 if this is a part of a bucket; else 0.
    #[must_use]
    #[inline(always)]
    pub const fn part(&self) -> u16 {
        self.part
    }

    /// The key as plain numbers: its kind, and the id in two halves.
    #[must_use]
    #[inline(always)]
    pub const fn key_words(&self) -> (u64, [u64; 2]) {
        let [high, low] = self.id;
        (
            self.kind.number(),
            [u64::from_be_bytes(high), u64::from_be_bytes(low)],
        )
    }

    /// The kind of the key.
    #[must_use]
    #[inline(always)]
    pub const fn key_kind(&self) -> KeyKind {
        self.kind
    }

    /// Decodes the key, without the limit and without a name beside it.
    #[must_use]
    pub const fn decode(&self) -> Key {
        match self.kind.key_part() {
            Some(KeyPart::Destination) => Key::Destination(self.address(self.kind.last())),
            Some(of) => {
                let half = of.name_kind().is_some() as usize;
                Key::Number(of, u64::from_be_bytes(self.id[half]))
            }
            None => Key::Source {
                address: self.address(self.kind.first()),
                prefix_length: self.kind.last(),
            },
        }
    }

    /// The address in the id; `family` is the family's number.
    const fn address(&self, family: u8) -> Address {
        let [high, low] = self.id;
        let low = match self.kind.name_kind() {
            Some(_) => [0; 8],
            None => low,
        };
        if family == Family::V4 as u8 {
            Address::v4([high[0], high[1], high[2], high[3]])
        } else {
            Address::v6(high, low)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_tell_whose_they_are() {
        let id = LimitId(3);
        let address = Address::v4([192, 0, 2, 77]);
        assert_eq!(
            BucketKey::of_source(id, address, 24).decode(),
            Key::Source {
                address: Address::v4([192, 0, 2, 0]),
                prefix_length: 24
            }
        );
        let address = Address::v6([0x20, 1, 0xd, 0xb8, 0, 0, 0, 0], [1, 2, 3, 4, 5, 6, 7, 8]);
        assert_eq!(
            BucketKey::of_source(id, address, 128).decode(),
            Key::Source {
                address,
                prefix_length: 128
            }
        );
        let of_subscriber = BucketKey::of_subscriber(id, u64::MAX);
        assert_eq!(
            of_subscriber.decode(),
            Key::Number(KeyPart::Subscriber, u64::MAX)
        );
        assert_eq!(
            BucketKey::of_interface(id, 7).decode(),
            Key::Number(KeyPart::Interface, 7)
        );
        let to_address = BucketKey::of_destination(id, address);
        assert_eq!(to_address.decode(), Key::Destination(address));
        let v4 = Address::v4([0x20, 1, 0xd, 0xb8]);
        let to_v4 = BucketKey::of_destination(id, v4);
        assert_eq!(to_v4.decode(), Key::Destination(v4));
        // A number never equals an address, nor a destination a source, even with the same bytes.
        let same_bytes = Address::v6([0x20, 1, 0xd, 0xb8, 0, 0, 0, 0], [0; 8]);
        assert_ne!(to_v4, BucketKey::of_destination(id, same_bytes));
        assert_ne!(to_v4, BucketKey::of_source(id, v4, 32));
        assert_ne!(to_address, BucketKey::of_source(id, address, 128));
        assert_ne!(of_subscriber, BucketKey::of_interface(id, u32::MAX));
        assert_ne!(
            BucketKey::of_subscriber(id, address.high),
            BucketKey::of_source(id, address, 64)
        );
    }
}
