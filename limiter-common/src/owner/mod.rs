//! Owners: whose budget a bucket is, and how that makes the bucket's key.

mod key;

pub use self::key::BucketKey;
use crate::address::{Address, Family};

/// What the id of an owner is: its IP version and how many leading bits of an address count, or a
/// number's kind. It tells the owners of one packet apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(transparent)]
pub struct OwnerKind(u32);

impl OwnerKind {
    /// Of no owner.
    pub const NONE: Self = Self(0);
    /// The number of a subscriber.
    pub const SUBSCRIBER: Self = Self(1 << 8);
    /// The daemon's number for an interface.
    pub const INTERFACE: Self = Self(2 << 8);

    /// The first `prefix_length` bits of an address of a family.
    #[must_use]
    pub const fn of_range(family: Family, prefix_length: u8) -> Self {
        Self((family as u32) << 8 | prefix_length as u32)
    }

    const fn prefix_length(self) -> u8 {
        let [.., prefix_length] = self.0.to_be_bytes();
        prefix_length
    }
}

/// Whose budget a bucket is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owner {
    /// That of an address or a range.
    Source {
        /// The address, or the range's first.
        address: Address,
        /// How many leading bits name the owner.
        prefix_length: u8,
    },
    /// That of a subscriber, by number.
    Subscriber(u64),
    /// That of all that comes in on an interface, by the daemon's number for it.
    Interface(u32),
}
