//! A line of buckets, or of known sources, in a map's value.

use limiter_common::table::Line;

use super::atomic;

/// A line of `WAYS` ways: names at even indices, states at odd ones.
pub(crate) struct MapLine<const WAYS: usize>(*mut u64);

impl<const WAYS: usize> MapLine<WAYS> {
    /// Makes a line from a map's value of `2 * WAYS` words.
    ///
    /// # Safety
    ///
    /// Each word must meet the conditions of [`atomic::compare_and_swap`].
    #[inline(always)]
    pub(crate) const unsafe fn new(words: *mut u64) -> Self {
        Self(words)
    }
}

impl<const WAYS: usize> Line for MapLine<WAYS> {
    const WAYS: usize = WAYS;

    #[inline(always)]
    fn fingerprint(&self, way: usize) -> u64 {
        // SAFETY: `way` is below WAYS, so the word belongs to the line.
        unsafe { atomic::load(self.0.add(2 * way)) }
    }

    #[inline(always)]
    fn state(&self, way: usize) -> u64 {
        // SAFETY: as in `fingerprint`.
        unsafe { atomic::load(self.0.add(2 * way + 1)) }
    }

    #[inline(always)]
    fn set_fingerprint(&self, way: usize, fingerprint: u64) {
        // SAFETY: as in `fingerprint`.
        unsafe { atomic::store(self.0.add(2 * way), fingerprint) };
    }

    #[inline(always)]
    fn set_state(&self, way: usize, state: u64) {
        // SAFETY: as in `fingerprint`.
        unsafe { atomic::store(self.0.add(2 * way + 1), state) };
    }

    #[inline(always)]
    fn compare_and_swap_state(&self, way: usize, seen: u64, new: u64) -> bool {
        // SAFETY: as in `fingerprint`.
        unsafe { atomic::compare_and_swap(self.0.add(2 * way + 1), seen, new) }
    }
}
