//! Finds buckets in memory.

use limiter_common::{
    bucket::Bucket,
    key::BucketKey,
    limit::LimitId,
    table::{self, AtomicLine, HashKey, WAYS},
};

/// Finds a bucket, in any unit, in a table of these lines, a power of two; `None`: it is missing.
#[must_use]
pub fn bucket_in(lines: &[AtomicLine], hash_key: &HashKey, key: &BucketKey) -> Option<Bucket> {
    let (hash, limit) = (hash_key.key_hash(key), LimitId(key.limit));
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
