//! Owners: whose budget a bucket is, and how that makes the bucket's key.

mod key;
mod of_packet;

pub(crate) use self::of_packet::OwnerOf;
pub use self::{key::BucketKey, of_packet::Known};
use crate::{
    address::{Address, Family},
    limit::NumberOf,
};

/// What the id of an owner is: its IP version and how many leading bits of an address count, or a
/// number's kind. It tells the owners of one packet apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(transparent)]
pub struct OwnerKind(u32);

impl OwnerKind {
    /// Of no owner.
    pub const NONE: Self = Self(0);

    /// The first `prefix_length` bits of an address of a family.
    #[must_use]
    pub const fn of_range(family: Family, prefix_length: u8) -> Self {
        Self((family as u32) << 8 | prefix_length as u32)
    }

    /// A number.
    #[must_use]
    pub const fn of_number(number: NumberOf) -> Self {
        Self((number as u32) << 8)
    }

    /// What the id is a number of; `None`: it is a range of addresses.
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
    /// That of an address or a range.
    Source {
        /// The address, or the range's first.
        address: Address,
        /// How many leading bits name the owner.
        prefix_length: u8,
    },
    /// That of whatever has a number.
    Number(NumberOf, u64),
}
