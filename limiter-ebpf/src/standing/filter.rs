//! The filter of sources with a standing.

use aya_ebpf::{bindings::BPF_F_MMAPABLE, btf_maps::Array, macros::btf_map};
use limiter_common::standing::FilterWord;

use crate::buckets::atomic;

/// The loader sets the number of words. Mappable, so that userspace can forget sources, and because such an array starts
/// at a page: its header is a cache line.
#[btf_map]
static STANDING_FILTER: Array<u64, 1, { BPF_F_MMAPABLE as usize }> = Array::new();

#[inline(always)]
pub(super) fn word(index: u32) -> Option<impl FilterWord> {
    STANDING_FILTER.get_ptr_mut(index).map(MapFilterWord)
}

struct MapFilterWord(*mut u64);

impl FilterWord for MapFilterWord {
    #[inline(always)]
    fn get(&self) -> u64 {
        // SAFETY: an element of the map, which is only changed atomically.
        unsafe { atomic::load(self.0) }
    }

    #[inline(always)]
    fn set(&self, bits: u64) {
        // SAFETY: as above.
        unsafe { atomic::set_bits(self.0, bits) };
    }
}
