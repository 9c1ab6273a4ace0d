//! Bans, in the kernel's hash map: written by the daemon alone.

use aya_ebpf::{
    bindings::{BPF_F_MMAPABLE, BPF_F_NO_PREALLOC, BPF_F_RDONLY_PROG},
    btf_maps::{Array, HashMap},
    macros::btf_map,
};
use limiter_common::ban::{Ban, BanKey, BanStore, Filter, LENGTH_WORDS};

/// The loader sets the capacity. A ban takes memory when it is made and not before.
#[btf_map]
static BANS: HashMap<BanKey, Ban, 1, { (BPF_F_NO_PREALLOC | BPF_F_RDONLY_PROG) as usize }> =
    HashMap::new();

/// Which prefix lengths any of them has.
#[btf_map]
static BAN_LENGTHS: Array<
    u64,
    { LENGTH_WORDS as usize },
    { (BPF_F_MMAPABLE | BPF_F_RDONLY_PROG) as usize },
> = Array::new();

/// The words of a [`Filter`], and those of its bits. The loader sets how many there are. The
/// kernel lets nobody write to the memory of a map that programs may only read.
#[btf_map]
static BAN_FILTER: Array<u64, 1, { BPF_F_MMAPABLE as usize }> = Array::new();

pub(super) struct MapBans;

impl BanStore for MapBans {
    #[inline(always)]
    fn lengths(&self, word: u32) -> u64 {
        match BAN_LENGTHS.get(word) {
            Some(lengths) => *lengths,
            None => 0,
        }
    }

    #[inline(always)]
    fn may_have(&self, key: &BanKey) -> bool {
        limiter_may_be_banned(key) == 1
    }

    #[inline(always)]
    fn until(&self, key: &BanKey) -> Option<u64> {
        // SAFETY: the daemon replaces whole entries, and a removed one stays readable until the
        // program has ended; the word is aligned.
        unsafe { BANS.get(key) }.map(|ban| ban.until_ns)
    }
}

/// Whether there may be a ban of that prefix: 1 or 0.
///
/// A global function of the BPF object: the verifier walks it once, and not once for each prefix
/// length.
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn limiter_may_be_banned(key: *const BanKey) -> u32 {
    let filter = Filter {
        factors: [word(0), word(1)],
        mask: word(2),
    };
    // SAFETY: the verifier lets a caller pass null or a whole readable value, nothing else.
    let Some(key) = (unsafe { key.as_ref() }) else {
        return 1;
    };
    if filter.mask == 0 {
        // Whoever made the map has not come to it yet.
        return 1;
    }
    let (place, bit) = filter.place(key);
    match BAN_FILTER.get(place) {
        Some(bits) => u32::from(bits & bit != 0),
        None => 1,
    }
}

#[inline(always)]
fn word(index: u32) -> u64 {
    match BAN_FILTER.get(index) {
        Some(word) => *word,
        None => 0,
    }
}
