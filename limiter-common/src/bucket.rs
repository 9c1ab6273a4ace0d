//! Buckets: their keys, and the seam behind which they are stored.

use crate::{
    address::{Address, Family},
    charge::Charge,
    limit::LimitId,
};

/// Names one bucket: the limit, and whose budget of that limit.
///
/// Every byte is defined and there is no padding: the kernel hashes the key as bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(C, align(8))]
pub struct BucketKey {
    /// The limit's interned id.
    pub limit: u16,
    /// What the id is: the IP version of an address or range, [`SUBSCRIBER`] or
    /// [`INTERFACE`].
    kind: u8,
    /// How many leading bits of an address count; the others are 0.
    prefix_length: u8,
    /// Always 0.
    reserved: u32,
    /// In network byte order: the masked address, IPv4 in the first four bytes; or a number in
    /// the first eight.
    id: [[u8; 8]; 2],
}

const SUBSCRIBER: u8 = 1;
const INTERFACE: u8 = 2;

const _: () = assert!(size_of::<BucketKey>() == 24, "no padding in a hashed key");

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

impl BucketKey {
    /// Of no limit.
    pub const NONE: Self = Self::of_number(LimitId(0), 0, 0);

    /// The bucket of `limit` that an `address` is charged to when its first
    /// `prefix_length` bits name the budget.
    #[must_use]
    #[inline(always)]
    pub const fn of_source(limit: LimitId, address: Address, prefix_length: u8) -> Self {
        let masked = address.masked(prefix_length);
        Self {
            limit: limit.0,
            kind: masked.family as u8,
            prefix_length,
            reserved: 0,
            id: [masked.high.to_be_bytes(), masked.low.to_be_bytes()],
        }
    }

    /// The bucket of `limit` that a subscriber is charged to.
    #[must_use]
    #[inline(always)]
    pub const fn of_subscriber(limit: LimitId, subscriber: u64) -> Self {
        Self::of_number(limit, SUBSCRIBER, subscriber)
    }

    /// The bucket of `limit` that all that comes in on an interface is charged to.
    #[must_use]
    #[inline(always)]
    pub const fn of_interface(limit: LimitId, interface: u32) -> Self {
        Self::of_number(limit, INTERFACE, interface as u64)
    }

    #[inline(always)]
    const fn of_number(limit: LimitId, kind: u8, number: u64) -> Self {
        Self {
            limit: limit.0,
            kind,
            prefix_length: 0,
            reserved: 0,
            id: [number.to_be_bytes(), [0; 8]],
        }
    }

    /// The owner in plain numbers: kind and prefix length, and the id in two halves.
    #[must_use]
    #[inline(always)]
    pub const fn owner_words(&self) -> (u64, [u64; 2]) {
        let [high, low] = self.id;
        (
            self.owner_kind() as u64,
            [u64::from_be_bytes(high), u64::from_be_bytes(low)],
        )
    }

    /// The owner's kind and prefix length, which tell the owners of one packet apart; not 0.
    #[must_use]
    #[inline(always)]
    pub const fn owner_kind(&self) -> u32 {
        (self.kind as u32) << 8 | self.prefix_length as u32
    }

    /// Whose budget it is.
    #[must_use]
    #[expect(
        clippy::cast_possible_truncation,
        reason = "interfaces have numbers of 32 bits"
    )]
    pub const fn owner(&self) -> Owner {
        let [high, low] = self.id;
        let number = u64::from_be_bytes(high);
        match self.kind {
            SUBSCRIBER => Owner::Subscriber(number),
            INTERFACE => Owner::Interface(number as u32),
            kind => Owner::Source {
                address: if kind == Family::V4 as u8 {
                    Address::v4([high[0], high[1], high[2], high[3]])
                } else {
                    Address::v6(high, low)
                },
                prefix_length: self.prefix_length,
            },
        }
    }
}

/// How often a store tries to change a bucket that other CPUs keep changing.
pub const ATTEMPTS: u32 = 32;

/// How an update of a bucket ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Updated {
    /// The state that was asked for is stored.
    Stored,
    /// The change declined; the bucket is as it was.
    Declined,
    /// Other CPUs won all [`ATTEMPTS`]; the bucket is theirs.
    Contended,
    /// The store has no room; the bucket does not exist.
    Unavailable,
    /// The store has no room, and the packet is to pass uncharged.
    Untracked,
}

impl Updated {
    /// The ending of that number.
    #[must_use]
    #[inline(always)]
    pub const fn of_number(number: u32) -> Self {
        const STORED: u32 = Updated::Stored as u32;
        const DECLINED: u32 = Updated::Declined as u32;
        const CONTENDED: u32 = Updated::Contended as u32;
        const UNTRACKED: u32 = Updated::Untracked as u32;
        match number {
            STORED => Self::Stored,
            DECLINED => Self::Declined,
            CONTENDED => Self::Contended,
            UNTRACKED => Self::Untracked,
            _ => Self::Unavailable,
        }
    }
}

/// Where the state of buckets is kept: one 64-bit word for each.
///
/// A bucket that does not exist is a full bucket, so reading never creates one.
pub trait BucketStore {
    /// Finds out, where the store needs it, where the charge's bucket is to be looked for.
    ///
    /// A charge that is prepared for one limit after the other keeps its place as long as the
    /// bucket's owner is the same.
    fn locate(&self, charge: &mut Charge);

    /// The state of the bucket, `None` when it does not exist or is full.
    fn read(&self, charge: &Charge) -> Option<u64>;

    /// Replaces the state of the bucket by what the charge's spend makes of it, in one atomic
    /// step: when another CPU changes it in between, the spend is asked again with the new
    /// state.
    fn spend(&self, charge: &Charge) -> Updated;

    /// Takes the charge's spend back, in the same way.
    fn refund(&self, charge: &Charge) -> Updated;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_tell_whose_they_are() {
        let id = LimitId(3);
        let address = Address::v4([192, 0, 2, 77]);
        assert_eq!(
            BucketKey::of_source(id, address, 24).owner(),
            Owner::Source {
                address: Address::v4([192, 0, 2, 0]),
                prefix_length: 24
            }
        );
        let address = Address::v6([0x20, 1, 0xd, 0xb8, 0, 0, 0, 0], [1, 2, 3, 4, 5, 6, 7, 8]);
        assert_eq!(
            BucketKey::of_source(id, address, 128).owner(),
            Owner::Source {
                address,
                prefix_length: 128
            }
        );
        let of_subscriber = BucketKey::of_subscriber(id, u64::MAX);
        assert_eq!(of_subscriber.owner(), Owner::Subscriber(u64::MAX));
        assert_eq!(BucketKey::of_interface(id, 7).owner(), Owner::Interface(7));
        // A number is no address, whatever its bytes.
        assert_ne!(of_subscriber, BucketKey::of_interface(id, u32::MAX));
        assert_ne!(
            BucketKey::of_subscriber(id, address.high),
            BucketKey::of_source(id, address, 64)
        );
    }
}
