//! Buckets: what a store keeps of one, and the trait of stores.

use crate::{
    numbered::numbered,
    owner::{BucketKey, OwnerKind},
};

/// What a store keeps of a bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bucket {
    /// The number of the unit that the state counts in.
    pub unit: u32,
    /// The state; the unit says what it means.
    pub state: u64,
}

/// The maximum number of attempts of an update while other CPUs keep changing the bucket.
pub const ATTEMPTS: u32 = 32;

numbered! {
    /// How an update of a bucket ended.
    pub enum Updated {
        /// The state that was decided on is stored.
        Stored,
        /// The decision was a refusal; the bucket's debt is unchanged.
        Declined,
        /// Other CPUs won all [`ATTEMPTS`]; the bucket is as they left it.
        Contended,
        /// The store has no room; the bucket does not exist.
        Unavailable,
        /// The store has no room, and the packet is to pass uncharged.
        Untracked,
    } else Unavailable
}

numbered! {
    /// How a swap of a bucket's state ended.
    pub enum Swap {
        /// The new state is stored.
        Stored,
        /// The bucket's state is no longer the one seen, or the bucket has moved. Read it again.
        Changed,
        /// The new state was stored, but the bucket's name changed at the same moment, and the
        /// state could not be taken back. If it is still the same bucket in another unit, the
        /// change was exchanged with it. So a charge may be repeated, which at worst charges too
        /// much; a refund must not be.
        Misplaced,
        /// The store has no room; the bucket does not exist.
        Unavailable,
        /// The store has no room, and the packet is to pass uncharged.
        Untracked,
    } else Unavailable
}

/// A decision on a bucket, for [`BucketStore::update`] to carry out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decided {
    /// The bucket's new state.
    pub state: u64,
    /// How the update ends once the bucket is in that state.
    pub ending: Ending,
}

numbered! {
    /// How an update ends once the bucket is in the state that was decided on.
    pub enum Ending {
        /// [`Updated::Stored`].
        Stored,
        /// [`Updated::Stored`], and the bucket owes less: must not be repeated after
        /// [`Swap::Misplaced`].
        GivenBack,
        /// [`Updated::Declined`].
        Declined,
        /// [`Updated::Untracked`]; the bucket stays as it is.
        Untracked,
        /// [`Updated::Unavailable`]; the bucket stays as it is.
        Unavailable,
        /// The update does not end: it reads the bucket again.
        Again,
    } else Unavailable
}

/// Where the state of buckets is kept: one 64-bit word for each.
///
/// A bucket that does not exist is a full bucket, so looking for it never creates it. State 0 is a
/// full bucket of any strategy; other states can be full too, such as any TAT that has passed.
///
/// A store knows nothing of strategies. It finds a state and replaces it by compare-and-swap; if
/// that fails, the caller decides again on the current state.
pub trait BucketStore {
    /// The store's handle of a bucket that it has looked for.
    type Location: Copy + Default;

    /// Looks for the bucket of a limit that counts in the unit of number `unit`; returns its state.
    ///
    /// It does not see a bucket that counts in another unit because its limit had another rate:
    /// [`Self::swap`] exchanges that one.
    ///
    /// If the search is for a single bucket, a store may leave the look-up to [`Self::update`] and
    /// return the state of a full bucket. [`Self::swap`] then returns [`Swap::Changed`].
    fn find(
        &self,
        key: &BucketKey,
        unit: u32,
        search: &mut Search,
        location: &mut Self::Location,
    ) -> u64;

    /// Looks for a numbered part of a bucket that was looked for; returns its state. A part is
    /// another bucket of the same limit and owner; the store does not know its purpose.
    fn find_part(
        &self,
        bucket: &Self::Location,
        number: u64,
        unit: u32,
        location: &mut Self::Location,
    ) -> u64;

    /// Looks again for a bucket; returns its state, which is 0 if the bucket is missing or counts
    /// in another unit.
    fn read(&self, location: &mut Self::Location) -> u64;

    /// Replaces the state `seen` of a bucket by `wanted`, in one atomic step. A missing bucket,
    /// whose state is 0, is created. A bucket in another unit is exchanged, so that it counts in
    /// this one when it is read again.
    fn swap(&self, location: &Self::Location, now_ns: u64, seen: u64, wanted: u64) -> Swap;

    /// Changes a bucket as `decide` says, while other CPUs may change it too. It calls `decide`
    /// again whenever another CPU was faster.
    ///
    /// Stores that can read and swap with one look-up override it.
    #[inline(always)]
    fn update(
        &self,
        location: &mut Self::Location,
        now_ns: u64,
        decide: &mut impl Decide<Self::Location>,
    ) -> Updated
    where
        Self: Sized,
    {
        update(self, location, now_ns, decide)
    }
}

/// Decides on a bucket's new state. Not a closure, which the kernel program could not inline.
pub trait Decide<Location> {
    /// Decides on the bucket at `location`, which is in that state.
    fn decide(&mut self, location: &Location, state: u64) -> Decided;
}

/// Does [`BucketStore::update`] by [`BucketStore::read`] and [`BucketStore::swap`].
#[inline(always)]
pub fn update<B: BucketStore>(
    buckets: &B,
    location: &mut B::Location,
    now_ns: u64,
    decide: &mut impl Decide<B::Location>,
) -> Updated {
    for _ in 0..ATTEMPTS {
        let seen = buckets.read(location);
        let swap = |wanted| buckets.swap(location, now_ns, seen, wanted);
        if let Some(updated) = decide.decide(location, seen).carry_out(seen, swap) {
            return updated;
        }
    }
    Updated::Contended
}

impl Decided {
    /// Leaves a bucket as it is, in `state`.
    #[must_use]
    #[inline(always)]
    pub const fn leave(state: u64, ending: Ending) -> Self {
        Self { state, ending }
    }

    /// Carries out the decision on a bucket in the state `seen`, which `swap` replaces by its
    /// argument; `None`: decide again.
    #[inline(always)]
    pub fn carry_out(self, seen: u64, swap: impl FnOnce(u64) -> Swap) -> Option<Updated> {
        let Self { state, ending } = self;
        let updated = match ending {
            Ending::Stored | Ending::GivenBack => Updated::Stored,
            Ending::Declined => Updated::Declined,
            Ending::Untracked => return Some(Updated::Untracked),
            Ending::Unavailable => return Some(Updated::Unavailable),
            Ending::Again => return None,
        };
        if state == seen {
            return Some(updated);
        }
        match swap(state) {
            Swap::Stored => Some(updated),
            Swap::Misplaced if matches!(ending, Ending::GivenBack) => Some(updated),
            Swap::Changed | Swap::Misplaced => None,
            Swap::Unavailable => Some(Updated::Unavailable),
            Swap::Untracked => Some(Updated::Untracked),
        }
    }
}

/// What the searches for the buckets of one packet share.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Search {
    /// The kind of owner that the hash was computed of; several limits often share one.
    pub hashed: OwnerKind,
    /// 1: the search is for one bucket, or for each bucket by itself.
    pub single: u32,
    /// The hash, for stores that have one.
    pub hash: u64,
}

impl Search {
    /// A search for one bucket.
    pub const SINGLE: Self = Self {
        hashed: OwnerKind::NONE,
        single: 1,
        hash: 0,
    };
}
