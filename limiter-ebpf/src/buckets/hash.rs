//! Buckets in the kernel's LRU hash map: exact keys, readable with `bpftool map dump`.

use aya_ebpf::{bindings::BPF_NOEXIST, btf_maps::LruHashMap, macros::btf_map};
use limiter_common::{
    bucket::{ATTEMPTS, BucketKey, Updated},
    gcra::Change,
};

use super::atomic;

/// The loader sets the capacity.
#[btf_map]
static BUCKETS: LruHashMap<BucketKey, u64, 1> = LruHashMap::new();

/// `-EEXIST`: another CPU made the bucket first.
const ALREADY_THERE: i32 = -17;

/// The state of the bucket; 0 when there is none.
#[inline(always)]
pub(super) fn read(key: &BucketKey) -> u64 {
    match BUCKETS.get_ptr_mut(key) {
        // SAFETY: an element of the map: 8 aligned bytes.
        Some(state) => unsafe { atomic::load(state) },
        None => 0,
    }
}

#[inline(always)]
pub(super) fn update(key: &BucketKey, change: Change) -> Updated {
    // Onto this function's own stack: until Linux 6.2 the verifier refuses another function's
    // as a map's key.
    let key = &{ *key };
    for _ in 0..ATTEMPTS {
        let state = BUCKETS.get_ptr_mut(key);
        // SAFETY: an element of the map: 8 aligned bytes.
        let seen = state.map(|state| unsafe { atomic::load(state) });
        if seen.is_none() && change.is_refund() {
            // The bucket is gone, and so is its debt.
            return Updated::Stored;
        }
        let Ok(wanted) = change.apply(seen.unwrap_or(0)) else {
            return Updated::Declined;
        };
        if let (Some(state), Some(seen)) = (state, seen) {
            // SAFETY: as above.
            if unsafe { atomic::compare_and_swap(state, seen, wanted) } {
                return Updated::Stored;
            }
        } else {
            match BUCKETS.insert(key, wanted, u64::from(BPF_NOEXIST)) {
                Ok(()) => return Updated::Stored,
                Err(ALREADY_THERE) => {}
                Err(_) => return Updated::Unavailable,
            }
        }
    }
    Updated::Contended
}
