//! Atomic operations on words in maps: core's stable atomics do not compile for BPF.

use core::intrinsics::{AtomicOrdering, atomic_cxchg, atomic_or, atomic_xadd, atomic_xchg};

const ORDER: AtomicOrdering = AtomicOrdering::SeqCst;

/// Stores `wanted` if the word still holds `seen`; returns whether it did.
///
/// # Safety
///
/// `word` must point into a map's value: 8 aligned bytes that stay mapped while the program runs
/// and are only ever changed atomically.
#[inline(always)]
pub(crate) unsafe fn compare_and_swap(word: *mut u64, seen: u64, wanted: u64) -> bool {
    // SAFETY: the caller's promise.
    let (_, swapped) = unsafe { atomic_cxchg::<u64, ORDER, ORDER>(word, seen, wanted) };
    swapped
}

/// Stores `wanted`, visible to all CPUs before all later accesses.
///
/// # Safety
///
/// As for [`compare_and_swap`].
#[inline(always)]
pub(crate) unsafe fn store(word: *mut u64, wanted: u64) {
    // SAFETY: the caller's promise.
    unsafe { atomic_xchg::<u64, ORDER>(word, wanted) };
}

/// Adds 1 to the word; returns its previous value.
///
/// # Safety
///
/// As for [`compare_and_swap`].
#[inline(always)]
pub(crate) unsafe fn count_up(word: *mut u64) -> u64 {
    // SAFETY: the caller's promise.
    unsafe { atomic_xadd::<u64, u64, ORDER>(word, 1) }
}

/// Subtracts 1 from the word; returns its previous value.
///
/// # Safety
///
/// As for [`compare_and_swap`].
#[inline(always)]
pub(crate) unsafe fn count_down(word: *mut u64) -> u64 {
    // SAFETY: the caller's promise.
    unsafe { atomic_xadd::<u64, u64, ORDER>(word, u64::MAX) }
}

/// Adds `summand` to the word, which wraps.
///
/// # Safety
///
/// As for [`compare_and_swap`].
#[inline(always)]
pub(crate) unsafe fn add(word: *mut u64, summand: u64) {
    // SAFETY: the caller's promise.
    unsafe { atomic_xadd::<u64, u64, ORDER>(word, summand) };
}

/// Sets bits of the word.
///
/// # Safety
///
/// As for [`compare_and_swap`].
#[inline(always)]
pub(crate) unsafe fn set_bits(word: *mut u64, bits: u64) {
    // SAFETY: the caller's promise.
    unsafe { atomic_or::<u64, u64, ORDER>(word, bits) };
}

/// Reads the word.
///
/// # Safety
///
/// As for [`compare_and_swap`].
#[inline(always)]
pub(crate) unsafe fn load(word: *const u64) -> u64 {
    // SAFETY: the caller's promise. Volatile, because other CPUs write it.
    unsafe { word.read_volatile() }
}
