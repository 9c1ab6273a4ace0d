//! The shares that single owners have of limits in common, in maps that all instances share.
//!
//! Only the daemon gives shares and takes them. Words change in place, by stores that programs see
//! whole. An element of the hash map keeps its number as long as it exists, and the daemon waits for all
//! programs that may have found it before it gives the number, or the element's memory, to another owner:
//! since Linux 6.1 the kernel itself does not wait.

use core::mem;

use aya_ebpf::{
    bindings::{BPF_F_MMAPABLE, BPF_F_NO_PREALLOC, BPF_F_RDONLY_PROG},
    btf_maps::{Array, HashMap, LruHashMap},
    macros::btf_map,
};
use limiter_common::{owner::BucketKey, strategy::gcra::OwnerShare};

use crate::{buckets::atomic, globals};

/// A [`BucketKey`] in words.
type BucketWords = [u64; 3];

/// The number of each owner's share. The loader sets the capacity of all three.
#[btf_map]
static OWNERS: HashMap<BucketWords, u64, 1, { (BPF_F_NO_PREALLOC | BPF_F_RDONLY_PROG) as usize }> =
    HashMap::new();

/// The shares by number.
#[btf_map]
static OWNER_SHARES: Array<OwnerShare, 1, { BPF_F_MMAPABLE as usize }> = Array::new();

/// How many packets were refused of owners without a share of their own, since the daemon has last taken
/// them out. Under a flood from more owners than fit, the kernel forgets some: they go on with the share
/// that all have.
#[btf_map]
static WANTING: LruHashMap<BucketKey, u64, 1> = LruHashMap::new();

/// Returns the number of parts of an owner's share, 0 if it has none, and counts what a packet wants of it.
#[inline(always)]
pub(crate) fn share(bucket: &BucketKey, wanted: u64, now_ns: u64) -> u32 {
    // SAFETY: as large and as aligned, and without padding.
    let [first, second, third] = unsafe { mem::transmute::<BucketKey, BucketWords>(*bucket) };
    limiter_owner_share(first, second, third, wanted, now_ns)
}

/// Does that. The bucket is passed in words: before Linux 6.5 a key must be in the function's own stack,
/// which has room for nothing else.
///
/// It is a global function of the BPF object: the verifier walks it once, for any arguments, and its
/// stack is not the stages'.
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn limiter_owner_share(
    first: u64,
    second: u64,
    third: u64,
    wanted: u64,
    now_ns: u64,
) -> u32 {
    // Older verifiers walk this function even if no limit is in common.
    if globals::shape().in_common == 0 {
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
    // SAFETY: an element of the map: aligned words. Userspace and other CPUs change them only
    // atomically.
    let share = unsafe {
        atomic::add(&raw mut (*share).wanted, wanted);
        OwnerShare {
            word: (&raw const (*share).word).read_volatile(),
            after: (&raw const (*share).after).read_volatile(),
            wanted: 0,
        }
    };
    share.in_force(now_ns).number()
}

/// Notes that a packet of an owner without a share was refused.
#[inline(always)]
pub(crate) fn note_wanting(bucket: &BucketKey) {
    if let Some(refused) = WANTING.get_ptr_mut(bucket) {
        // SAFETY: an element of the map, an aligned word; other CPUs add atomically, too. If it was
        // forgotten meanwhile, one refusal counts for another owner.
        unsafe { atomic::add(refused, 1) };
    } else {
        // If there is no room, the owner is noted with a later packet.
        let _ = WANTING.insert(bucket, 1, 0);
    }
}
