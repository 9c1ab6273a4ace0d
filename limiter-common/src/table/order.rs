//! Orders: requests from userspace to the kernel to change one bucket.
//!
//! Userspace changes no bucket itself, because it may be killed between any two instructions, with
//! a way locked; a kernel program cannot be.

use crate::{key::BucketKey, numbered::numbered, strategy::Spend};

/// One order, as the kernel program reads it.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Order {
    /// The bucket's key, for a table with exact keys.
    pub key: BucketKey,
    /// The bucket's fingerprint in the table; in the hash map, the number of its unit.
    pub fingerprint: u64,
    /// The amount to spend or to give back.
    pub spend: Spend,
    /// The state that [`OrderKind::Swap`] expects.
    pub seen: u64,
    /// The state that [`OrderKind::Swap`] stores.
    pub wanted: u64,
    /// The time, in nanoseconds.
    pub now_ns: u64,
    /// The bucket's line of the table.
    pub line: u32,
    /// The number of an [`OrderKind`].
    pub kind: u32,
}

numbered! {
    /// The operation of an order.
    pub enum OrderKind {
        /// Spend, and create the bucket if it is missing. A refusal changes nothing.
        Spend,
        /// Swap the state if it is the expected one. Do nothing if it is the wanted one already: a
        /// missing bucket is full, so it need not be created to be full.
        Swap,
        /// Give back [`Spend::refunded`], if the bucket exists.
        GiveBack,
        /// Fill the bucket, by [`super::clear`].
        Clear,
        /// No operation; unused in orders.
        Unknown,
    } else Unknown
}

/// The bit added to an order's result, the number of an [`UpdateOutcome`](crate::bucket::UpdateOutcome), if the
/// order evicted a bucket in debt.
pub const EVICTED: u32 = 1 << 16;

const _: () = assert!(size_of::<Order>() == 24 + 8 + 40 + 4 * 8, "no padding");
