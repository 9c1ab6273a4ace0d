//! Orders: what userspace asks the kernel to do to one bucket.
//!
//! Userspace changes no bucket itself, because it may be killed between any two instructions; a
//! kernel program cannot be.

use crate::{numbered::numbered, owner::BucketKey, strategy::Spend};

/// One order, as the kernel program reads it.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Order {
    /// The bucket's key, for a store with exact keys.
    pub key: BucketKey,
    /// The bucket's fingerprint in the table; in the hash map, the number of its
    /// unit.
    pub fingerprint: u64,
    /// What to spend or to give back.
    pub spend: Spend,
    /// The state that [`OrderKind::Swap`] expects.
    pub seen: u64,
    /// The state that [`OrderKind::Swap`] replaces it with.
    pub wanted: u64,
    /// The time, in nanoseconds.
    pub now_ns: u64,
    /// The bucket's line of the table.
    pub line: u32,
    /// The number of an [`OrderKind`].
    pub kind: u32,
}

numbered! {
    /// What to do.
    pub enum OrderKind {
        /// Spend, and create the bucket if it is missing. A refusal changes nothing.
        Spend,
        /// Swap the state if it is the expected one. If it already is the wanted one, do nothing:
        /// so a missing bucket, which is full, is not created to be full.
        Swap,
        /// Give back what [`Spend::refunded`] says, if the bucket exists.
        GiveBack,
        /// [`super::clear`]
        Clear,
        /// Nothing: no order is of this kind.
        Unknown,
    } else Unknown
}

/// An order ends with the number of an [`Updated`](crate::bucket::Updated), and this bit if a
/// bucket in debt was forgotten for it.
pub const EVICTED: u32 = 1 << 16;

const _: () = assert!(size_of::<Order>() == 24 + 8 + 40 + 4 * 8, "no padding");
