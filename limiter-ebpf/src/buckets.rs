//! Buckets in the kernel's LRU hash map: exact keys, readable with `bpftool map dump`.

use core::intrinsics::{AtomicOrdering, atomic_cxchg};

use aya_ebpf::{bindings::BPF_NOEXIST, btf_maps::LruHashMap, macros::btf_map};
use limiter_common::{
    bucket::{ATTEMPTS, BucketKey, BucketStore, Updated},
    gcra::Change,
};

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
        // SAFETY: as in `limiter_update_bucket`.
        Some(unsafe { state.read_volatile() })
    }

    #[inline(always)]
    fn update(&self, key: &BucketKey, change: &Change) -> Updated {
        match limiter_update_bucket(key, change) {
            STORED => Updated::Stored,
            DECLINED => Updated::Declined,
            CONTENDED => Updated::Contended,
            _ => Updated::Unavailable,
        }
    }
}

const STORED: u32 = Updated::Stored as u32;
const DECLINED: u32 = Updated::Declined as u32;
const CONTENDED: u32 = Updated::Contended as u32;
const UNAVAILABLE: u32 = Updated::Unavailable as u32;

/// [`HashBuckets::update`], returning an [`Updated`] as its number.
///
/// A global function of the BPF object: the verifier walks it once, for any arguments, and
/// not once for each limit and attempt.
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn limiter_update_bucket(key: *const BucketKey, change: *const Change) -> u32 {
    // SAFETY: the verifier lets a caller pass null or a whole readable value, nothing else.
    let (Some(key), Some(change)) = (unsafe { key.as_ref() }, unsafe { change.as_ref() }) else {
        return UNAVAILABLE;
    };
    // Onto this function's own stack: until Linux 6.2 the verifier refuses another function's
    // as a map's key.
    let key = &{ *key };
    for _ in 0..ATTEMPTS {
        let state = BUCKETS.get_ptr_mut(key);
        // SAFETY: the map's element is 8 aligned bytes that stay mapped while the program
        // runs. Volatile, because other CPUs write it.
        let seen = state.map(|state| unsafe { state.read_volatile() });
        let Ok(wanted) = change.apply(seen) else {
            return DECLINED;
        };
        if let (Some(state), Some(seen)) = (state, seen) {
            if compare_and_swap(state, seen, wanted) {
                return STORED;
            }
        } else {
            match BUCKETS.insert(key, wanted, u64::from(BPF_NOEXIST)) {
                Ok(()) => return STORED,
                Err(ALREADY_THERE) => {}
                Err(_) => return UNAVAILABLE,
            }
        }
    }
    CONTENDED
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
