//! A line of the table of buckets in memory.

use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

use limiter_common::table::{Line, WAYS};

/// A line that several threads may use at once, and the kernel with them where the memory is a
/// map's: names at even places, states at odd ones.
#[derive(Debug, Default)]
#[repr(transparent)]
pub struct AtomicLine([AtomicU64; 2 * WAYS]);

impl Line for &AtomicLine {
    fn name(&self, way: usize) -> u64 {
        self.0[2 * way].load(SeqCst)
    }

    fn state(&self, way: usize) -> u64 {
        self.0[2 * way + 1].load(SeqCst)
    }

    fn set_name(&self, way: usize, name: u64) {
        self.0[2 * way].store(name, SeqCst);
    }

    fn set_state(&self, way: usize, state: u64) {
        self.0[2 * way + 1].store(state, SeqCst);
    }

    fn compare_and_swap_state(&self, way: usize, seen: u64, new: u64) -> bool {
        self.0[2 * way + 1]
            .compare_exchange(seen, new, SeqCst, SeqCst)
            .is_ok()
    }
}
