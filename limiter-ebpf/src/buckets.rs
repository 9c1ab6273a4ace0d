//! Buckets in the kernel's LRU hash map: exact keys, readable with `bpftool map dump`.

use core::intrinsics::{AtomicOrdering, atomic_cxchg};

use aya_ebpf::{bindings::BPF_NOEXIST, btf_maps::LruHashMap, macros::btf_map};
use limiter_common::bucket::{ATTEMPTS, BucketKey, BucketStore, Updated};

/// The loader sets the capacity.
#[btf_map]
static BUCKETS: LruHashMap<BucketKey, u64, 1024> = LruHashMap::new();

/// `-EEXIST`: another CPU made the bucket first.
const ALREADY_THERE: i32 = -17;

pub(crate) struct HashBuckets;

impl BucketStore for HashBuckets {
    #[inline(always)]
    fn read(&self, key: &BucketKey) -> Option<u64> {
        let state = BUCKETS.get_ptr_mut(key)?;
        // SAFETY: the map's element is 8 aligned bytes that stay mapped while the program
        // runs. Volatile, because other CPUs write it.
        Some(unsafe { state.read_volatile() })
    }

    #[inline(always)]
    fn update(&self, key: &BucketKey, change: impl Fn(Option<u64>) -> Option<u64>) -> Updated {
        for _ in 0..ATTEMPTS {
            if let Some(state) = BUCKETS.get_ptr_mut(key) {
                // SAFETY: as in `read`.
                let seen = unsafe { state.read_volatile() };
                let Some(wanted) = change(Some(seen)) else {
                    return Updated::Declined;
                };
                if compare_and_swap(state, seen, wanted) {
                    return Updated::Stored;
                }
            } else {
                let Some(wanted) = change(None) else {
                    return Updated::Declined;
                };
                match BUCKETS.insert(key, wanted, u64::from(BPF_NOEXIST)) {
                    Ok(()) => return Updated::Stored,
                    Err(ALREADY_THERE) => {}
                    Err(_) => return Updated::Unavailable,
                }
            }
        }
        Updated::Contended
    }
}

/// Stores `wanted` if the word still holds `seen`.
#[inline(always)]
fn compare_and_swap(word: *mut u64, seen: u64, wanted: u64) -> bool {
    const ORDER: AtomicOrdering = AtomicOrdering::SeqCst;
    // SAFETY: `word` points to an element of the map: 8 aligned bytes that stay mapped while
    // the program runs and are only ever changed atomically.
    let (_, swapped) = unsafe { atomic_cxchg::<u64, ORDER, ORDER>(word, seen, wanted) };
    swapped
}
