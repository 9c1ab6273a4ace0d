//! Bans, in the kernel's hash map, which only the daemon writes, and their hits.

use aya_ebpf::{
    bindings::{BPF_F_MMAPABLE, BPF_F_NO_PREALLOC, BPF_F_RDONLY_PROG},
    btf_maps::{Array, HashMap},
    macros::btf_map,
};
use limiter_common::{
    ban::{Ban, BanKey, BanLookup, Filter, Hits, LENGTH_WORDS},
    counters::Traffic,
};

use crate::buckets::atomic;

/// The loader sets the capacity. Without preallocation: a ban takes memory only when it is made.
#[btf_map]
static BANS: HashMap<BanKey, Ban, 1, { (BPF_F_NO_PREALLOC | BPF_F_RDONLY_PROG) as usize }> =
    HashMap::new();

/// The prefix lengths of all bans, as bits.
#[btf_map]
static BAN_LENGTHS: Array<
    u64,
    { LENGTH_WORDS as usize },
    { (BPF_F_MMAPABLE | BPF_F_RDONLY_PROG) as usize },
> = Array::new();

/// The words of a [`Filter`], then the words of its bits. The loader sets their number. The map is writable for
/// programs, because the kernel would otherwise make its mapped memory read-only for everyone.
#[btf_map]
static BAN_FILTER: Array<u64, 1, { BPF_F_MMAPABLE as usize }> = Array::new();

/// The traffic that the bans of each prefix have dropped. The daemon creates an element with the prefix's first ban and
/// removes it with the last. Packets only add to existing elements, so forgers cannot fill the map. The loader sets the
/// capacity.
///
/// All CPUs share an element. With up to four million bans, an element for each CPU would take too much memory.
#[btf_map]
static BAN_HITS: HashMap<BanKey, Hits, 1, { BPF_F_NO_PREALLOC as usize }> = HashMap::new();

#[inline(always)]
pub(super) fn count_hit(key: &BanKey, traffic: Traffic) {
    if let Some(hits) = BAN_HITS.get_ptr_mut(key) {
        // SAFETY: an element of the map: aligned words that stay mapped, even if it is removed meanwhile. Other CPUs
        // add atomically too.
        unsafe {
            atomic::add(&raw mut (*hits).packets, traffic.packets);
            atomic::add(&raw mut (*hits).bytes, traffic.bytes);
        }
    }
}

pub(super) struct MapBans;

impl BanLookup for MapBans {
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
        // SAFETY: the daemon replaces whole entries, and a removed one stays readable until the program has ended; the
        // word is aligned.
        unsafe { BANS.get(key) }.map(|ban| ban.until_ns)
    }
}

/// Returns 1 if this prefix may be banned, else 0.
///
/// It is a global function of the BPF object: the verifier walks it once, not once for each prefix length.
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
        // The map's creator has not filled it yet.
        return 1;
    }
    let (word_index, bit) = filter.bit_of(key);
    match BAN_FILTER.get(word_index) {
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
