//! First tries of sources, in lines of one cache line each.

use core::arch::asm;

use aya_ebpf::{bindings::BPF_F_MMAPABLE, btf_maps::Array, macros::btf_map};
use limiter_common::standing::{FIRST_TRIES as IN_LINE, FirstTries};

/// The loader sets the number of lines. Mappable, because the values of such an array start at a
/// page and not within a cache line.
#[btf_map]
static FIRST_TRIES: Array<[u32; IN_LINE + 1], 1, { BPF_F_MMAPABLE as usize }> = Array::new();

#[inline(always)]
pub(super) fn line(index: u32) -> Option<impl FirstTries> {
    let line = FIRST_TRIES.get_ptr_mut(index)?;
    Some(MapFirstTries::new(line))
}

/// A line of first tries in a map.
pub(crate) struct MapFirstTries(*mut u32);

impl MapFirstTries {
    #[inline(always)]
    pub(crate) const fn new(line: *mut [u32; IN_LINE + 1]) -> Self {
        Self(line.cast())
    }

    #[inline(always)]
    fn word(&self, index: usize) -> *mut u32 {
        let mut index = index;
        // SAFETY: it only changes the register. LLVM would remove a bound that it can prove, but
        // the verifier needs it.
        unsafe {
            asm!("{0} &= 15", inout(reg) index, options(pure, nomem, nostack));
        }
        const { assert!(IN_LINE == 15, "as the bound says") };
        self.0.wrapping_add(index)
    }
}

impl FirstTries for MapFirstTries {
    #[inline(always)]
    fn get(&self, index: usize) -> u32 {
        // SAFETY: a word of the line, which stays mapped. Volatile, because other CPUs write it.
        unsafe { self.word(index).read_volatile() }
    }

    #[inline(always)]
    fn set(&self, index: usize, word: u32) {
        // SAFETY: as above.
        unsafe { self.word(index).write_volatile(word) };
    }
}
