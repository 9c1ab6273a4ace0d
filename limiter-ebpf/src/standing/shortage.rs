//! The shortage: one word that every packet reads under a policy with standing.

use aya_ebpf::{bindings::BPF_F_MMAPABLE, btf_maps::Array, macros::btf_map};
use limiter_common::standing::ShortageWord;

use crate::buckets::atomic;

/// Mappable, because such an array starts at a page: its cache line has no other data.
#[btf_map]
static SHORTAGE: Array<u64, 1, { BPF_F_MMAPABLE as usize }> = Array::new();

#[inline(always)]
pub(super) fn word() -> Option<impl ShortageWord> {
    SHORTAGE.get_ptr_mut(0).map(MapWord)
}

struct MapWord(*mut u64);

impl ShortageWord for MapWord {
    #[inline(always)]
    fn get(&self) -> u64 {
        // SAFETY: an element of the map, which is only changed atomically.
        unsafe { atomic::load(self.0) }
    }

    #[inline(always)]
    fn compare_and_swap(&self, seen: u64, new: u64) -> bool {
        // SAFETY: as above.
        unsafe { atomic::compare_and_swap(self.0, seen, new) }
    }
}
