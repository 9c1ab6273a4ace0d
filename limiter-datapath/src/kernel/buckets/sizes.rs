//! The sizes of the two stores' maps.

use limiter_policy::config::{Buckets, Store};

/// The sizes of the two stores' maps; 0 for the unused store.
pub(in crate::kernel) struct BucketSizes {
    pub(in crate::kernel) hash_entries: u32,
    pub(in crate::kernel) table_lines: u32,
}

impl BucketSizes {
    pub(in crate::kernel) fn new(buckets: Buckets) -> Self {
        match buckets.store {
            Store::Hash => Self {
                hash_entries: buckets.capacity,
                table_lines: 0,
            },
            Store::Table => Self {
                hash_entries: 0,
                table_lines: table_lines(buckets.capacity),
            },
        }
    }
}

/// The number of lines for `capacity` buckets, a power of two.
pub(in crate::kernel) fn table_lines(capacity: u32) -> u32 {
    capacity.div_ceil(WAYS_IN_LINE).next_power_of_two()
}

const WAYS_IN_LINE: u32 = 4;
