//! Cached names, in an array that userspace only reads.

use aya_ebpf::{bindings::BPF_F_MMAPABLE, btf_maps::Array, macros::btf_map};
use limiter_common::{
    cached_names::{self, NameLine, NameLines},
    sieve::Word,
};

use crate::{buckets::atomic, globals};

/// The loader sets the number of lines. Mappable, so that userspace can count the names, and because such an
/// array starts at a page, and so each line at a cache line.
#[btf_map]
static KNOWN_NAMES: Array<NameLine, 1, { BPF_F_MMAPABLE as usize }> = Array::new();

struct MapNames;

impl NameLines for MapNames {
    #[inline(always)]
    fn count(&self) -> u64 {
        globals::features().name_lines
    }

    #[inline(always)]
    fn line(&self, index: u32) -> Option<&NameLine> {
        KNOWN_NAMES.get(index)
    }

    #[inline(always)]
    fn swap(&self, word: &Word, seen: u64, new: u64) {
        // SAFETY: a word of a map's value.
        let _ = unsafe { atomic::compare_and_swap(word.atomic().as_ptr(), seen, new) };
    }
}

/// Calls [`cached_names::is_cached`]; returns 1 for true.
///
/// Like the one below, it is a global function of the BPF object: the verifier walks it once, and it does not use the
/// stage's stack.
#[unsafe(no_mangle)]
#[inline(never)]
pub(super) extern "C" fn limiter_is_name_cached(hash: u64, now_ns: u64) -> u32 {
    let features = globals::features();
    // Older verifiers walk the function even if no limit counts new names.
    let is_cached =
        features.by_new_name != 0 && cached_names::is_cached(&MapNames, features, hash, now_ns);
    u32::from(is_cached)
}

/// Calls [`cached_names::enter`]; returns 0, because global functions must return a number.
#[unsafe(no_mangle)]
#[inline(never)]
pub(super) extern "C" fn limiter_keep_name(hash: u64, now_ns: u64) -> u32 {
    if globals::features().by_new_name != 0 {
        cached_names::enter(&MapNames, hash, now_ns);
    }
    0
}
