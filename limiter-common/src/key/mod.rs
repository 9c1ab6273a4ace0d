//! Keys of buckets: the values by which limits count. A [`BucketKey`] is a key with its limit.

mod bucket_key;
mod of_packet;

pub(crate) use self::of_packet::KeyMapping;
pub use self::{
    bucket_key::BucketKey,
    of_packet::{KeyFields, MOST_BITS_BESIDE_NAMES},
};
use crate::{
    address::{Address, Family},
    limit::{KeyPart, NameKind},
};

/// The kind of a key: the IP version with the number of leading address bits, or the kind
/// of a number. It distinguishes the keys of one packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(transparent)]
pub struct KeyKind(u32);

impl KeyKind {
    /// The kind of no key.
    pub const NONE: Self = Self(0);

    /// The kind of the first `prefix_length` bits of an address.
    #[must_use]
    pub const fn of_range(family: Family, prefix_length: u8) -> Self {
        Self((family as u32) << 8 | prefix_length as u32)
    }

    /// The kind of a destination address.
    #[must_use]
    pub const fn of_destination(family: Family) -> Self {
        Self((KeyPart::Destination as u32) << 8 | family as u32)
    }

    /// Returns the kind of a number.
    #[must_use]
    pub const fn of_number(number: KeyPart) -> Self {
        Self((number as u32) << 8)
    }

    /// The kind of the same id with a name beside it; the id's second half is the name's number.
    #[must_use]
    pub const fn with_name(self, name_kind: NameKind) -> Self {
        Self(self.0 | (name_kind as u32) << 16)
    }

    /// The kind of the name beside the id; `None`: no name.
    const fn name_kind(self) -> Option<NameKind> {
        let [_, name_kind, ..] = self.0.to_be_bytes();
        NameKind::of_number(name_kind)
    }

    /// The kind as a number of 24 bits.
    #[must_use]
    #[inline(always)]
    pub(crate) const fn number(self) -> u64 {
        self.0 as u64
    }

    /// Whether the kind has the length of a range, or the family of a destination.
    #[must_use]
    #[inline(always)]
    pub(crate) const fn has_length(self) -> bool {
        self.last() != 0
    }

    /// The part of the packet that the id comes from; `None`: a range of sources.
    const fn key_part(self) -> Option<KeyPart> {
        KeyPart::of_number(self.first())
    }

    /// The family of a range of sources, or the number of a [`KeyPart`].
    const fn first(self) -> u8 {
        let [.., first, _] = self.0.to_be_bytes();
        first
    }

    /// The length of a range of sources, the family of a destination, or 0.
    const fn last(self) -> u8 {
        let [.., last] = self.0.to_be_bytes();
        last
    }
}

/// The value by which a limit counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Key {
    /// A source address or a range of them.
    Source {
        /// The address, or the first one of the range.
        address: Address,
        /// The number of leading bits that name the key.
        prefix_length: u8,
    },
    /// A destination address.
    Destination(Address),
    /// Anything with a number.
    Number(KeyPart, u64),
}
