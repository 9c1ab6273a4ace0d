//! Buckets: their keys, and the seam behind which they are stored.

use crate::{
    address::{Address, Family},
    charge::{Charge, Workspace},
    decide::{self, WindowChange},
    limit::LimitId,
    policy::Tables,
    strategy::moving_window,
};

/// Names one bucket: the limit, and whose budget of that limit.
///
/// Every byte is defined and there is no padding: the kernel hashes the key as bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(C, align(8))]
pub struct BucketKey {
    /// The limit's interned id.
    pub limit: u16,
    /// Of a moving window's log the number of the stamp, from 1 on; 0: the bucket itself.
    stamp: u16,
    /// What the id is.
    kind: OwnerKind,
    /// In network byte order: the masked address, IPv4 in the first four bytes; or a number in
    /// the first eight.
    id: [[u8; 8]; 2],
}

const _: () = assert!(size_of::<BucketKey>() == 24, "no padding in a hashed key");

impl Default for BucketKey {
    fn default() -> Self {
        Self::NONE
    }
}

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

impl BucketKey {
    /// Of no limit.
    pub const NONE: Self = Self::new(LimitId(0), OwnerKind::NONE, 0, 0);

    /// The bucket of `limit` whose owner's id is of `kind`; the other bits of it are 0.
    #[must_use]
    #[inline(always)]
    pub const fn new(limit: LimitId, kind: OwnerKind, high: u64, low: u64) -> Self {
        Self {
            limit: limit.0,
            stamp: 0,
            kind,
            id: [high.to_be_bytes(), low.to_be_bytes()],
        }
    }

    /// The bucket of `limit` that an `address` is charged to when its first
    /// `prefix_length` bits name the budget.
    #[must_use]
    pub const fn of_source(limit: LimitId, address: Address, prefix_length: u8) -> Self {
        let Address { family, high, low } = address.masked(prefix_length);
        Self::new(limit, OwnerKind::of_range(family, prefix_length), high, low)
    }

    /// The bucket of `limit` that a subscriber is charged to.
    #[must_use]
    pub const fn of_subscriber(limit: LimitId, subscriber: u64) -> Self {
        Self::new(limit, OwnerKind::SUBSCRIBER, subscriber, 0)
    }

    /// The bucket of `limit` that all that comes in on an interface is charged to.
    #[must_use]
    pub const fn of_interface(limit: LimitId, interface: u32) -> Self {
        Self::new(limit, OwnerKind::INTERFACE, interface as u64, 0)
    }

    /// The bucket of a stamp of this one's log, by the stamp's number, which is below
    /// [`moving_window::STAMPS`].
    #[must_use]
    #[inline(always)]
    pub const fn of_stamp(mut self, number: u64) -> Self {
        self.stamp = (number % moving_window::STAMPS) as u16 + 1;
        self
    }

    /// Of the bucket of a stamp one more than the stamp's number; 0: it is none.
    #[must_use]
    #[inline(always)]
    pub const fn stamp(&self) -> u16 {
        self.stamp
    }

    /// The owner in plain numbers: its kind, and the id in two halves.
    #[must_use]
    #[inline(always)]
    pub const fn owner_words(&self) -> (u64, [u64; 2]) {
        let [high, low] = self.id;
        (
            self.kind.0 as u64,
            [u64::from_be_bytes(high), u64::from_be_bytes(low)],
        )
    }

    /// What the owner's id is.
    #[must_use]
    #[inline(always)]
    pub const fn owner_kind(&self) -> OwnerKind {
        self.kind
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
            OwnerKind::SUBSCRIBER => Owner::Subscriber(number),
            OwnerKind::INTERFACE => Owner::Interface(number as u32),
            kind => Owner::Source {
                address: if kind.0 >> 8 == Family::V4 as u32 {
                    Address::v4([high[0], high[1], high[2], high[3]])
                } else {
                    Address::v6(high, low)
                },
                prefix_length: kind.prefix_length(),
            },
        }
    }
}

/// What is stored of a bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bucket {
    /// The number of the unit that the state counts in.
    pub unit: u32,
    /// What the unit makes of it.
    pub state: u64,
}

/// How often a store tries to change a bucket that other CPUs keep changing.
pub const ATTEMPTS: u32 = 32;

/// How an update of a bucket ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Updated {
    /// The state that was asked for is stored.
    Stored,
    /// The change declined; the bucket owes what it did.
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
/// A bucket that does not exist is a full bucket, so looking for it never creates it. The state 0
/// is that of a full bucket, whatever its strategy; there are others, such as any TAT that has
/// passed.
pub trait BucketStore {
    /// How the store gets back to a bucket that it has looked for.
    type Found: Copy + Default;

    /// Whether it may be asked for limits of other strategies than GCRA. One that never is is
    /// spared what these take.
    const WINDOWS: bool = true;

    /// Looks for a bucket of a limit that counts in the unit of number `unit`; returns its state.
    ///
    /// One that counts in another unit, since its limit had another rate, it does not see:
    /// [`Self::spend`] exchanges it.
    ///
    /// Where it is the only one, a store may leave the look-up to [`Self::spend`], and say that
    /// the bucket is full.
    fn find(&self, key: &BucketKey, unit: u32, search: &mut Search, found: &mut Self::Found)
    -> u64;

    /// Replaces the state of the bucket by what the charge's spend makes of it, in one atomic
    /// step: when another CPU has changed it since it was looked for, the spend is asked again
    /// with the new state.
    fn spend(&self, charge: &Charge<Self::Found>) -> Updated;

    /// Takes the charge's spend back, in the same way.
    fn refund(&self, charge: &Charge<Self::Found>) -> Updated;

    /// The state of a bucket that was looked for; 0 when it is not there, or in another unit.
    fn read(&self, found: &Self::Found) -> u64;

    /// Looks for a stamp of a bucket that was looked for, by the stamp's number; returns its
    /// state.
    fn find_stamp(
        &self,
        bucket: &Self::Found,
        number: u64,
        unit: u32,
        found: &mut Self::Found,
    ) -> u64;

    /// [`decide::prepare`]. The kernel program makes it a function of its own, which the verifier
    /// walks once and not once for each way to get there; so with the next ones.
    #[inline(always)]
    fn prepare<T: Tables>(
        &self,
        tables: &T,
        workspace: &mut Workspace<Self::Found>,
        slot: u32,
    ) -> u64
    where
        Self: Sized,
    {
        decide::prepare(self, tables, workspace, slot)
    }

    /// [`decide::decide_window`].
    #[inline(always)]
    fn decide_window(
        &self,
        workspace: &mut Workspace<Self::Found>,
        slot: u32,
        wanted: WindowChange,
    ) -> u64
    where
        Self: Sized,
    {
        decide::decide_window(self, workspace, slot, wanted)
    }

    /// [`decide::change_window`].
    #[inline(always)]
    fn change_window(
        &self,
        workspace: &mut Workspace<Self::Found>,
        slot: u32,
        wanted: WindowChange,
    ) -> Updated
    where
        Self: Sized,
    {
        decide::change_window(self, workspace, slot, wanted)
    }
}

/// What the searches for the buckets of one packet share.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Search {
    /// Of what kind of owner the hash is; several limits mostly have the same one.
    pub hashed: OwnerKind,
    /// 1: it is for one bucket only, or for each by itself.
    pub single: u32,
    /// The hash, for stores that have one.
    pub hash: u64,
}

impl Search {
    /// For one bucket.
    pub const SINGLE: Self = Self {
        hashed: OwnerKind::NONE,
        single: 1,
        hash: 0,
    };
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
