//! Owners: whose budget a bucket is, and how an owner makes the bucket's key.

mod key;
mod of_packet;

pub(crate) use self::of_packet::OwnerOf;
pub use self::{key::BucketKey, of_packet::OwnerFields};
use crate::{
    address::{Address, Family},
    limit::NumberOf,
};

/// The kind of an owner's id: the IP version and how many leading bits of an address count, or the
/// kind of a number. It distinguishes the owners of one packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(transparent)]
pub struct OwnerKind(u32);

impl OwnerKind {
    /// The kind of no owner.
    pub const NONE: Self = Self(0);

    /// Returns the kind of the first `prefix_length` bits of an address of a family.
    #[must_use]
    pub const fn of_range(family: Family, prefix_length: u8) -> Self {
        Self((family as u32) << 8 | prefix_length as u32)
    }

    /// Returns the kind of a number.
    #[must_use]
    pub const fn of_number(number: NumberOf) -> Self {
        Self((number as u32) << 8)
    }

    /// Returns what the id is a number of; `None`: it is a range of addresses.
    const fn number(self) -> Option<NumberOf> {
        let [.., number, _] = self.0.to_be_bytes();
        NumberOf::of_number(number)
    }

    const fn prefix_length(self) -> u8 {
        let [.., prefix_length] = self.0.to_be_bytes();
        prefix_length
    }
}

/// The owner of a bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owner {
    /// An address or a range.
    Source {
        /// The address, or the range's first.
        address: Address,
        /// How many leading bits name the owner.
        prefix_length: u8,
    },
    /// Anything with a number.
    Number(NumberOf, u64),
}
