//! A line in the memory of a process.

use core::sync::atomic::{AtomicU64, Ordering::SeqCst};

use super::{Line, WAYS};

/// A line that several threads may use at once, and the kernel too if the memory is a map's. Names
/// have even indices, states odd ones.
#[derive(Debug, Default)]
#[repr(transparent)]
pub struct AtomicLine([AtomicU64; 2 * WAYS]);

impl AtomicLine {
    /// A snapshot of its words. Each word is read atomically; the whole is not.
    #[must_use]
    pub fn words(&self) -> [u64; 2 * WAYS] {
        self.0.each_ref().map(|word| word.load(SeqCst))
    }

    fn is_empty(&self) -> bool {
        let mut any = 0;
        for word in &self.0 {
            any |= word.load(SeqCst);
        }
        any == 0
    }
}

/// The first line at or after `from` with a word other than 0, and its index.
#[must_use]
pub fn next_occupied(lines: &[AtomicLine], from: u32) -> Option<(u32, &AtomicLine)> {
    let rest = lines.get(from as usize..)?;
    (from..).zip(rest).find(|(_, line)| !line.is_empty())
}

impl Line for &AtomicLine {
    const WAYS: usize = WAYS;

    fn fingerprint(&self, way: usize) -> u64 {
        self.0[2 * way].load(SeqCst)
    }

    fn state(&self, way: usize) -> u64 {
        self.0[2 * way + 1].load(SeqCst)
    }

    fn set_fingerprint(&self, way: usize, fingerprint: u64) {
        self.0[2 * way].store(fingerprint, SeqCst);
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
