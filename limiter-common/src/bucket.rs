//! Buckets: what is stored of one, and the seam behind which they are.

use crate::{
    charge::{Charge, Workspace},
    decide::{self, WindowChange},
    owner::{BucketKey, OwnerKind},
    policy::Tables,
};

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
