//! Buckets, and the trait of the tables that keep them.

use crate::{
    key::{BucketKey, KeyKind},
    numbered::numbered,
};

/// A bucket as a table keeps it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bucket {
    /// The number of the unit that the state counts in.
    pub unit: u32,
    /// The state; the unit gives its meaning.
    pub state: u64,
}

/// The maximum number of attempts of an update while other CPUs keep changing the bucket.
pub const ATTEMPTS: u32 = 32;

numbered! {
    /// The outcome of an update of a bucket.
    pub enum UpdateOutcome {
        /// The new state is stored.
        Stored,
        /// The decision was a refusal; the bucket's debt is unchanged.
        Declined,
        /// Other CPUs won all [`ATTEMPTS`]; the bucket keeps the state they gave it.
        Contended,
        /// The table has no room; the bucket does not exist.
        Unavailable,
        /// The table has no room, and the packet is to pass uncharged.
        Untracked,
    } else Unavailable
}

numbered! {
    /// The outcome of a swap of a bucket's state.
    pub enum Swap {
        /// The new state is stored.
        Stored,
        /// The bucket's state has changed, or the bucket has moved. Read it again.
        Changed,
        /// The new state was stored, but the bucket's name changed at the same moment, and the
        /// state could not be taken back. If it is still the same bucket in another unit, the
        /// exchange into that unit included the change. Repeating a charge is therefore safe (at
        /// worst it charges too much); repeating a refund is not.
        Misplaced,
        /// The table has no room; the bucket does not exist.
        Unavailable,
        /// The table has no room, and the packet is to pass uncharged.
        Untracked,
    } else Unavailable
}

/// A decision on a bucket, for [`BucketTable::update`] to carry out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transition {
    /// The bucket's new state.
    pub state: u64,
    /// The outcome of the update once the bucket is in that state.
    pub ending: Ending,
}

numbered! {
    /// The outcome of an update once the bucket is in the decided state.
    pub enum Ending {
        /// [`UpdateOutcome::Stored`].
        Stored,
        /// [`UpdateOutcome::Stored`], and the bucket owes less: do not repeat it after
        /// [`Swap::Misplaced`].
        GivenBack,
        /// [`UpdateOutcome::Declined`].
        Declined,
        /// [`UpdateOutcome::Untracked`]; the bucket stays as it is.
        Untracked,
        /// [`UpdateOutcome::Unavailable`]; the bucket stays as it is.
        Unavailable,
        /// The update goes on: it reads the bucket again.
        Again,
    } else Unavailable
}

/// Keeps the state of buckets: one 64-bit word for each.
///
/// A missing bucket counts as a full bucket, so a look-up never creates one. State 0 is a full
/// bucket of any strategy; other states can be full too, such as any TAT that has passed.
///
/// A table knows nothing of strategies. It finds a state and replaces it by compare-and-swap; if
/// that fails, the caller decides again on the current state.
pub trait BucketTable {
    /// The table's handle of a bucket after its look-up.
    type Location: Copy + Default;

    /// Looks up a limit's bucket that counts in unit number `unit`; returns its state.
    ///
    /// The look-up does not see a bucket in another unit, left from an earlier rate of the limit:
    /// [`Self::swap`] exchanges it.
    ///
    /// If the search is for a single bucket, a table may leave the look-up to [`Self::update`] and
    /// return the state of a full bucket. [`Self::swap`] then returns [`Swap::Changed`].
    fn find(
        &self,
        key: &BucketKey,
        unit: u32,
        search: &mut Search,
        location: &mut Self::Location,
    ) -> u64;

    /// Looks up a numbered part of a found bucket; returns its state. A part is another bucket of
    /// the same limit and key; the table does not know its purpose.
    fn find_part(
        &self,
        bucket: &Self::Location,
        number: u64,
        unit: u32,
        location: &mut Self::Location,
    ) -> u64;

    /// Reads a bucket again; returns 0 if it is missing or counts in another unit.
    fn read(&self, location: &mut Self::Location) -> u64;

    /// Replaces the state `seen` of a bucket by `wanted`, in one atomic step. Creates a missing
    /// bucket, which has state 0. Exchanges a bucket in another unit, so that the next read finds
    /// it in this one.
    fn swap(&self, location: &Self::Location, now_ns: u64, seen: u64, wanted: u64) -> Swap;

    /// Changes a bucket as `decide` says, while other CPUs may change it too; calls `decide` again
    /// whenever another CPU was faster.
    ///
    /// Tables that can read and swap with one look-up override it.
    #[inline(always)]
    fn update(
        &self,
        location: &mut Self::Location,
        now_ns: u64,
        decide: &mut impl Decide<Self::Location>,
    ) -> UpdateOutcome
    where
        Self: Sized,
    {
        update(self, location, now_ns, decide)
    }
}

/// Decides on a bucket's new state. A trait, because the kernel program could not inline a closure.
pub trait Decide<Location> {
    /// Decides on the bucket at `location`, given its current `state`.
    fn decide(&mut self, location: &Location, state: u64) -> Transition;
}

/// The default [`BucketTable::update`]: [`BucketTable::read`] and [`BucketTable::swap`] in a loop.
#[inline(always)]
pub fn update<B: BucketTable>(
    buckets: &B,
    location: &mut B::Location,
    now_ns: u64,
    decide: &mut impl Decide<B::Location>,
) -> UpdateOutcome {
    for _ in 0..ATTEMPTS {
        let seen = buckets.read(location);
        let swap = |wanted| buckets.swap(location, now_ns, seen, wanted);
        if let Some(updated) = decide.decide(location, seen).carry_out(seen, swap) {
            return updated;
        }
    }
    UpdateOutcome::Contended
}

impl Transition {
    /// A decision that leaves the bucket in its current `state`.
    #[must_use]
    #[inline(always)]
    pub const fn leave(state: u64, ending: Ending) -> Self {
        Self { state, ending }
    }

    /// Carries out the decision on a bucket in the state `seen`; `swap` stores its argument in
    /// place of `seen`. `None`: decide again.
    #[inline(always)]
    pub fn carry_out(self, seen: u64, swap: impl FnOnce(u64) -> Swap) -> Option<UpdateOutcome> {
        let Self { state, ending } = self;
        let updated = match ending {
            Ending::Stored | Ending::GivenBack => UpdateOutcome::Stored,
            Ending::Declined => UpdateOutcome::Declined,
            Ending::Untracked => return Some(UpdateOutcome::Untracked),
            Ending::Unavailable => return Some(UpdateOutcome::Unavailable),
            Ending::Again => return None,
        };
        if state == seen {
            return Some(updated);
        }
        match swap(state) {
            Swap::Stored => Some(updated),
            Swap::Misplaced if matches!(ending, Ending::GivenBack) => Some(updated),
            Swap::Changed | Swap::Misplaced => None,
            Swap::Unavailable => Some(UpdateOutcome::Unavailable),
            Swap::Untracked => Some(UpdateOutcome::Untracked),
        }
    }
}

/// State shared by the searches for the buckets of one packet, and kept for the next packet's.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Search {
    /// 1: the search is for one bucket, or for each bucket by itself.
    pub single: u32,
    /// The last hashed keys, for tables that use hashes: of numbers such as an interface, and of addresses and ranges.
    /// Limits often share a key, and successive packets often have one: all packets of a limit on all sources, and a
    /// burst from one source.
    pub(crate) hashed: [HashedKey; 2],
}

/// A key and its hash.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct HashedKey {
    pub(crate) kind: u64,
    pub(crate) id: [u64; 2],
    pub(crate) hash: u64,
}

impl Search {
    /// A search for one bucket.
    pub const SINGLE: Self = {
        let none = HashedKey {
            kind: KeyKind::NONE.number(),
            id: [0; 2],
            hash: 0,
        };
        Self {
            single: 1,
            hashed: [none; 2],
        }
    };
}
