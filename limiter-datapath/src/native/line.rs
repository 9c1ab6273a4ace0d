//! Lines of the table of buckets in memory.

use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

use limiter_common::{
    bucket::Bucket,
    limit::LimitId,
    owner::BucketKey,
    table::{self, HashKey, Line, WAYS},
};

/// A line that several threads may use at once, and the kernel with them where the memory is a
/// map's: names at even places, states at odd ones.
#[derive(Debug, Default)]
#[repr(transparent)]
pub struct AtomicLine([AtomicU64; 2 * WAYS]);

impl Line for &AtomicLine {
    const WAYS: usize = WAYS;

    fn name(&self, way: usize) -> u64 {
        self.0[2 * way].load(SeqCst)
    }

    fn state(&self, way: usize) -> u64 {
        self.0[2 * way + 1].load(SeqCst)
    }

    fn set_name(&self, way: usize, name: u64) {
        self.0[2 * way].store(name, SeqCst);
    }

    fn set_state(&self, way: usize, state: u64) {
        self.0[2 * way + 1].store(state, SeqCst);
    }

    fn compare_and_swap_state(&self, way: usize, seen: u64, new: u64) -> bool {
        self.0[2 * way + 1]
            .compare_exchange(seen, new, SeqCst, SeqCst)
            .is_ok()
    }
}

/// What the table of these lines, a power of two of them, has of a bucket, in whatever unit; `None`:
/// it has none.
#[must_use]
pub fn bucket_in(lines: &[AtomicLine], hash_key: &HashKey, key: &BucketKey) -> Option<Bucket> {
    let (place, limit) = (hash_key.place(key), LimitId(key.limit));
    let name = table::name(place, limit, 0);
    let count = u32::try_from(lines.len()).unwrap_or(u32::MAX);
    let line = lines.get(place.line(limit, count) as usize)?;
    (0..WAYS)
        .filter_map(|way| table::entry(&line, way))
        .find(|(found, _)| table::is_same_bucket(*found, name))
        .map(|(found, state)| Bucket {
            unit: table::unit_of(found),
            state,
        })
}
