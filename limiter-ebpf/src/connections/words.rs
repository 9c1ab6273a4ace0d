//! A line of words in a map.

use limiter_common::connection::line::{SLOTS, Slots};

use crate::buckets::atomic;

/// The line, an element of a map.
pub(super) struct Words(*mut u64);

impl Words {
    #[inline(always)]
    pub(super) const fn new(line: *mut [u64; SLOTS]) -> Self {
        Self(line.cast())
    }

    #[inline(always)]
    const fn word(&self, slot: usize) -> *mut u64 {
        self.0.wrapping_add(slot % SLOTS)
    }

    #[inline(always)]
    pub(super) fn load(&self, slot: usize) -> u64 {
        // SAFETY: a word of the line, which stays mapped and is only changed atomically.
        unsafe { atomic::load(self.word(slot)) }
    }

    #[inline(always)]
    pub(super) fn compare_and_swap(&self, slot: usize, seen: u64, wanted: u64) -> bool {
        // SAFETY: as above.
        unsafe { atomic::compare_and_swap(self.word(slot), seen, wanted) }
    }

    /// Subtracts 1 from a word; returns its previous value.
    #[inline(always)]
    pub(super) fn count_down(&self, slot: usize) -> u64 {
        // SAFETY: as above.
        unsafe { atomic::count_down(self.word(slot)) }
    }
}

impl Slots for Words {
    #[inline(always)]
    fn get(&self, slot: usize) -> u64 {
        self.load(slot)
    }
}
