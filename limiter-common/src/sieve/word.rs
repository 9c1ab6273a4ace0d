//! A word that several CPUs access.

use core::sync::atomic::AtomicU64;

/// A word that is read and written as a whole, without order among other words: the shard's lock orders
/// them.
#[derive(Debug, Default)]
#[repr(transparent)]
pub struct Word(AtomicU64);

impl Word {
    /// The word for atomic operations.
    #[must_use]
    #[inline(always)]
    pub const fn atomic(&self) -> &AtomicU64 {
        &self.0
    }

    /// The word's value.
    #[must_use]
    #[inline(always)]
    pub fn get(&self) -> u64 {
        #[cfg(target_arch = "bpf")]
        // SAFETY: the word is valid and aligned. LLVM has no atomic loads for the BPF of most kernels; a
        // volatile load of eight bytes is one instruction.
        unsafe {
            self.0.as_ptr().read_volatile()
        }
        #[cfg(not(target_arch = "bpf"))]
        self.0.load(core::sync::atomic::Ordering::Relaxed)
    }

    /// Sets the word's value.
    #[inline(always)]
    pub fn set(&self, value: u64) {
        #[cfg(target_arch = "bpf")]
        // SAFETY: as in `get`; concurrent readers read it in one instruction.
        unsafe {
            self.0.as_ptr().write_volatile(value);
        }
        #[cfg(not(target_arch = "bpf"))]
        self.0.store(value, core::sync::atomic::Ordering::Relaxed);
    }
}
