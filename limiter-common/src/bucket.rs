//! Buckets: their keys, and the seam behind which they are stored.

use crate::{address::Address, gcra::Change, limit::LimitId};

/// Names one bucket: the limit, and whose budget of that limit.
///
/// Every byte is defined and there is no padding: the kernel hashes the key as bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(C, align(8))]
pub struct BucketKey {
    /// The limit's interned id.
    pub limit: u16,
    /// The IP version, 4 or 6: the same bits mean another source in the other family.
    pub family: u8,
    /// How many leading bits of the address count; the others are 0.
    pub prefix_length: u8,
    /// Always 0.
    reserved: u32,
    /// The masked address in network byte order; IPv4 in the first four bytes.
    pub address: [[u8; 8]; 2],
}

const _: () = assert!(size_of::<BucketKey>() == 24, "no padding in a hashed key");

impl BucketKey {
    /// The bucket of `limit` that an `address` is charged to when its first
    /// `prefix_length` bits name the budget.
    #[must_use]
    #[inline(always)]
    pub const fn new(limit: LimitId, address: Address, prefix_length: u8) -> Self {
        let masked = address.masked(prefix_length);
        Self {
            limit: limit.0,
            family: masked.family as u8,
            prefix_length,
            reserved: 0,
            address: [masked.high.to_be_bytes(), masked.low.to_be_bytes()],
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
}

/// Where the state of buckets is kept: one 64-bit word for each.
///
/// A bucket that does not exist is a full bucket, so reading never creates one.
pub trait BucketStore {
    /// The state of the bucket, `None` when it does not exist.
    fn read(&self, key: &BucketKey) -> Option<u64>;

    /// Replaces the state of the bucket by what `change` makes of it, in one atomic step:
    /// when another CPU changes it in between, `change` is asked again with the new state.
    fn update(&self, key: &BucketKey, change: &Change) -> Updated;
}
