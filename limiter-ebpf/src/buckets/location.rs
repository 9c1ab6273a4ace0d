//! The location of a bucket.

use limiter_common::{key::BucketKey, table::TableLocation};

/// The handle of a bucket in either table.
#[derive(Clone, Copy, Default)]
#[repr(C)]
pub(crate) struct BucketLocation {
    /// Used only by the hash map.
    pub(super) key: BucketKey,
    /// For the hash map, the fingerprint is the number of the unit, and the way tells whether the
    /// bucket was looked up ([`super::hash::LOOKED_UP`]).
    pub(super) table: TableLocation,
}
