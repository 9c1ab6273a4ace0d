//! The shares that single keys have of shared limits, in maps that all instances share.
//!
//! Only the daemon gives and takes shares. Words change in place, by stores that programs see whole. An element of the
//! hash map keeps its number as long as it exists. Before the daemon gives the number, or the element's memory, to
//! another key, it waits for all programs that may have found the element: since Linux 6.1 the kernel itself does not
//! wait.

use core::mem;

use aya_ebpf::{
    bindings::{BPF_F_MMAPABLE, BPF_F_NO_PREALLOC, BPF_F_RDONLY_PROG},
    btf_maps::{Array, HashMap, LruHashMap},
    macros::btf_map,
};
use limiter_common::{key::BucketKey, strategy::gcra::KeyShare};

use crate::{buckets::atomic, globals};

/// A [`BucketKey`] in words.
type BucketWords = [u64; 3];

/// The number of each key's share. The loader sets the capacity of all three maps.
#[btf_map]
static OWNERS: HashMap<BucketWords, u64, 1, { (BPF_F_NO_PREALLOC | BPF_F_RDONLY_PROG) as usize }> =
    HashMap::new();

/// The shares by number.
#[btf_map]
static OWNER_SHARES: Array<KeyShare, 1, { BPF_F_MMAPABLE as usize }> = Array::new();

/// The number of refused packets of each key without its own share, since the daemon last drained the map. Under a
/// flood from more keys than fit, the kernel evicts some: they go on with the common share.
#[btf_map]
static WANTING: LruHashMap<BucketKey, u64, 1> = LruHashMap::new();

/// Returns the number of parts of a key's share, 0 if it has no share, and counts the packet's demand.
#[inline(always)]
pub(crate) fn share(bucket: &BucketKey, wanted: u64, now_ns: u64) -> u32 {
    // SAFETY: both types have the same size and alignment, and no padding.
    let [first, second, third] = unsafe { mem::transmute::<BucketKey, BucketWords>(*bucket) };
    limiter_key_share(first, second, third, wanted, now_ns)
}

/// Does [`share`]. The bucket is passed in words: before Linux 6.5 a key must be in the function's own stack, which has
/// room for nothing else.
///
/// It is a global function of the BPF object: the verifier walks it once, for any arguments, and it does not use the
/// stages' stack.
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn limiter_key_share(
    first: u64,
    second: u64,
    third: u64,
    wanted: u64,
    now_ns: u64,
) -> u32 {
    // Older verifiers walk this function even if the policy has no shared limit.
    if globals::features().shared == 0 {
        return 0;
    }
    let bucket = &[first, second, third];
    // SAFETY: the value never changes, and is copied at once.
    let Some(number) = (unsafe { OWNERS.get(bucket) }).copied() else {
        return 0;
    };
    #[expect(clippy::cast_possible_truncation, reason = "an index of an array")]
    let Some(share) = OWNER_SHARES.get_ptr_mut(number as u32) else {
        return 0;
    };
    // SAFETY: an element of the map: aligned words. Userspace and other CPUs change them only atomically.
    let share = unsafe {
        atomic::add(&raw mut (*share).wanted, wanted);
        KeyShare {
            word: (&raw const (*share).word).read_volatile(),
            after: (&raw const (*share).after).read_volatile(),
            wanted: 0,
        }
    };
    share.in_force(now_ns).number()
}

/// Counts a refused packet of a key without a share.
#[inline(always)]
pub(crate) fn record_demand(bucket: &BucketKey) {
    if let Some(refused) = WANTING.get_ptr_mut(bucket) {
        // SAFETY: an element of the map, an aligned word; other CPUs add atomically too. If the element was evicted
        // meanwhile, one refusal counts for another key.
        unsafe { atomic::add(refused, 1) };
    } else {
        // If the map has no room, a later packet adds the key.
        let _ = WANTING.insert(bucket, 1, 0);
    }
}
