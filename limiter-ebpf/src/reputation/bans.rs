//! Bans, in the kernel's hash map: written by the daemon alone.

use aya_ebpf::{
    bindings::{BPF_F_MMAPABLE, BPF_F_NO_PREALLOC, BPF_F_RDONLY_PROG},
    btf_maps::{Array, HashMap},
    macros::btf_map,
};
use limiter_common::ban::{Ban, BanKey, BanStore, LENGTH_WORDS};

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
    fn until(&self, key: &BanKey) -> Option<u64> {
        // SAFETY: the daemon replaces whole entries, and a removed one stays readable until the
        // program has ended; the word is aligned.
        unsafe { BANS.get(key) }.map(|ban| ban.until_ns)
    }
}
