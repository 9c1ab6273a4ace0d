//! Lines of the table of buckets in memory.

use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

use limiter_common::{
    bucket::Bucket,
    limit::LimitId,
    owner::BucketKey,
    table::{self, HashKey, Line, WAYS},
};

/// A line that several threads may use at once; so may the kernel if the memory is a map's. Names
/// have even indices, states odd ones.
#[derive(Debug, Default)]
#[repr(transparent)]
pub struct AtomicLine([AtomicU64; 2 * WAYS]);

impl AtomicLine {
    /// Returns its words, each as it is at some moment.
    pub(crate) fn words(&self) -> [u64; 2 * WAYS] {
        self.0.each_ref().map(|word| word.load(SeqCst))
    }

    /// Returns whether all of its words are 0, each at some moment: quicker than to read them.
    pub(crate) fn is_empty(&self) -> bool {
        let mut any = 0;
        for word in &self.0 {
            any |= word.load(SeqCst);
        }
        any == 0
    }
}

impl Line for &AtomicLine {
    const WAYS: usize = WAYS;

    fn fingerprint(&self, way: usize) -> u64 {
        self.0[2 * way].load(SeqCst)
    }

    fn state(&self, way: usize) -> u64 {
        self.0[2 * way + 1].load(SeqCst)
    }

    fn set_fingerprint(&self, way: usize, fingerprint: u64) {
        self.0[2 * way].store(fingerprint, SeqCst);
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

/// Returns a bucket from the table of these lines, whose number is a power of two, in whatever unit
/// it counts; `None`: it is missing.
#[must_use]
pub fn bucket_in(lines: &[AtomicLine], hash_key: &HashKey, key: &BucketKey) -> Option<Bucket> {
    let (hash, limit) = (hash_key.owner_hash(key), LimitId(key.limit));
    let fingerprint = table::fingerprint(hash, limit, 0);
    let count = u32::try_from(lines.len()).unwrap_or(u32::MAX);
    let line = lines.get(hash.line(limit, count) as usize)?;
    (0..WAYS)
        .filter_map(|way| table::entry(&line, way))
        .find(|(found, _)| table::is_same_bucket(*found, fingerprint))
        .map(|(found, state)| Bucket {
            unit: table::unit_of(found),
            state,
        })
}
