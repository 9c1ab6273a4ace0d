//! A word that several CPUs access.

use core::sync::atomic::AtomicU64;

/// A word that is read and written as a whole, in no order among others: that is what the lock of
/// a shard is for.
#[derive(Debug, Default)]
#[repr(transparent)]
pub struct Word(AtomicU64);

impl Word {
    /// For atomic steps.
    #[must_use]
    #[inline(always)]
    pub const fn atomic(&self) -> &AtomicU64 {
        &self.0
    }

    /// What it holds.
    #[must_use]
    #[inline(always)]
    pub fn get(&self) -> u64 {
        #[cfg(target_arch = "bpf")]
        // SAFETY: it is there and aligned. LLVM has no atomic loads for the BPF of most kernels; a
        // volatile one of eight bytes is one instruction.
        unsafe {
            self.0.as_ptr().read_volatile()
        }
        #[cfg(not(target_arch = "bpf"))]
        self.0.load(core::sync::atomic::Ordering::Relaxed)
    }

    /// Has it hold another value.
    #[inline(always)]
    pub fn set(&self, value: u64) {
        #[cfg(target_arch = "bpf")]
        // SAFETY: as in `get`; and whoever reads it meanwhile does so in one instruction.
        unsafe {
            self.0.as_ptr().write_volatile(value);
        }
        #[cfg(not(target_arch = "bpf"))]
        self.0.store(value, core::sync::atomic::Ordering::Relaxed);
    }
}
