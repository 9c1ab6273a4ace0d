//! Sieves, in arrays: the daemon sets the pressure and only reads the rest.

use aya_ebpf::{
    bindings::{BPF_F_MMAPABLE, BPF_F_RDONLY_PROG},
    btf_maps::{Array, PerCpuArray},
    macros::btf_map,
};
use limiter_common::{
    address::{Address, Family},
    classified_packet::ClassifiedPacket,
    decide::{self, Sieves, Verdict},
    policy::Tables,
    sieve::{
        self, CONTENDED, Entry, Memory, PRESSURES, Pressure, Shard, SieveLists, SieveTraffic, Word,
    },
};

use crate::{buckets::atomic, globals, tables::MapTables};

/// The loader sets the number of entries; likewise for the next two maps. Mappable, so that
/// userspace can read them, and because such an array starts at a page, and so each entry at a
/// cache line.
#[btf_map]
static SIEVE_ENTRIES: Array<Entry, 1, { BPF_F_MMAPABLE as usize }> = Array::new();

/// The first entry of each chain.
#[btf_map]
static SIEVE_HEADS: Array<Word, 1, { BPF_F_MMAPABLE as usize }> = Array::new();

#[btf_map]
static SIEVE_SHARDS: Array<Shard, 1, { BPF_F_MMAPABLE as usize }> = Array::new();

#[btf_map]
static PRESSURE: Array<Pressure, { PRESSURES as usize }, { BPF_F_RDONLY_PROG as usize }> =
    Array::new();

#[btf_map]
static SIEVE_TRAFFIC: PerCpuArray<SieveTraffic, { PRESSURES as usize }> = PerCpuArray::new();

/// Implements [`limiter_common::source_tables::SourceTables::sift`].
#[inline(always)]
pub(super) fn sift(packet: &ClassifiedPacket, verdict: &mut Verdict) -> bool {
    decide::sift(&MapTables, &MapSieves, packet, verdict)
}

struct MapSieves;

impl Sieves for MapSieves {
    #[inline(always)]
    fn pressure(&self, index: u32, now_ns: u64) -> u32 {
        match PRESSURE.get(index) {
            Some(pressure) => pressure.at(now_ns),
            None => 0,
        }
    }

    #[inline(always)]
    fn count(&self, index: u32, change: impl FnOnce(&mut SieveTraffic)) {
        if let Some(traffic) = SIEVE_TRAFFIC.get_ptr_mut(index) {
            // SAFETY: this CPU's own element; XDP programs do not preempt each other on a CPU.
            change(unsafe { &mut *traffic });
        }
    }

    #[inline(always)]
    fn score<T: Tables>(&self, _tables: &T, sieve: u32, source: &Address, now_ns: u64) -> u32 {
        let Address { family, high, low } = *source;
        limiter_score(sieve, u32::from(family == Family::V6), high, low, now_ns)
    }

    #[inline(always)]
    fn sift_by<T: Tables>(
        &self,
        _tables: &T,
        number: u32,
        packet: &ClassifiedPacket,
        verdict: &mut Verdict,
        previous: u32,
    ) -> u32 {
        limiter_sift_by(number, packet, verdict, previous)
    }
}

struct MapMemory;

impl Memory for MapMemory {
    #[inline(always)]
    fn entry(&self, index: u32) -> Option<&Entry> {
        SIEVE_ENTRIES.get(index)
    }

    #[inline(always)]
    fn head(&self, index: u32) -> Option<&Word> {
        SIEVE_HEADS.get(index)
    }

    #[inline(always)]
    fn shard(&self, index: u32) -> Option<&Shard> {
        SIEVE_SHARDS.get(index)
    }

    #[inline(always)]
    fn compare_and_swap(&self, word: &Word, seen: u64, new: u64) -> bool {
        // SAFETY: a word of a map's value.
        unsafe { atomic::compare_and_swap(word.atomic().as_ptr(), seen, new) }
    }

    #[inline(always)]
    fn store(&self, word: &Word, value: u64) {
        // SAFETY: as above.
        unsafe { atomic::store(word.atomic().as_ptr(), value) };
    }

    #[inline(always)]
    fn relink(&self, entries: u32, number: u32, list: u32) {
        limiter_relink(entries, number, list);
    }

    #[inline(always)]
    fn evict(&self, entries: u32, heads: u32, list: u32, free_list: u32) {
        limiter_evict(entries, heads, list, free_list);
    }

    #[inline(always)]
    fn find_list(&self, entries: u32, head: u32, key: &Address) -> Option<u32> {
        let Address { family, high, low } = *key;
        match limiter_find_list(entries, head, u32::from(family == Family::V6), high, low) {
            NO_LIST => None,
            list => Some(list),
        }
    }
}

/// Calls [`decide::sift_by`].
///
/// Like the functions below, it is a global function of the BPF object: the verifier walks it once,
/// for any arguments, and it does not use the stage's stack.
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn limiter_sift_by(
    number: u32,
    packet: *const ClassifiedPacket,
    verdict: *mut Verdict,
    previous: u32,
) -> u32 {
    // SAFETY: the verifier lets a caller pass null or whole values, nothing else; they are this
    // CPU's, and the caller does not use them meanwhile.
    match unsafe { (packet.as_ref(), verdict.as_mut()) } {
        (Some(packet), Some(verdict)) => {
            decide::sift_by(&MapTables, &MapSieves, number, packet, verdict, previous)
        }
        _ => previous,
    }
}

/// The [`sieve::score`] of a source, with its address in words, in the sieve with this number.
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn limiter_score(sieve: u32, is_v6: u32, high: u64, low: u64, now_ns: u64) -> u32 {
    match MapTables.sieve(sieve) {
        Some(sieve) => {
            let key = sieve.key(&address(is_v6, high, low));
            let hash_key = &globals::features().hash_key;
            sieve::score(&MapMemory, sieve, hash_key, &key, now_ns)
        }
        None => sieve::LIST | CONTENDED,
    }
}

/// Calls [`SieveLists::relink`]; returns 0, because global functions must return a number.
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn limiter_relink(entries: u32, number: u32, list: u32) -> u32 {
    SieveLists::new(&MapMemory, entries).relink(number, list);
    0
}

/// Calls [`SieveLists::evict`]; returns 0 likewise.
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn limiter_evict(entries: u32, heads: u32, list: u32, free_list: u32) -> u32 {
    SieveLists::new(&MapMemory, entries).evict(heads, list, free_list);
    0
}

/// Calls [`SieveLists::find_list`]; returns the list, or [`NO_LIST`].
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn limiter_find_list(entries: u32, head: u32, is_v6: u32, high: u64, low: u64) -> u32 {
    let lists = SieveLists::new(&MapMemory, entries);
    match lists.find_list(head, &address(is_v6, high, low)) {
        Some(list) => list,
        None => NO_LIST,
    }
}

/// In place of a list's number, for [`limiter_find_list`]: no list.
const NO_LIST: u32 = u32::MAX;

#[inline(always)]
const fn address(is_v6: u32, high: u64, low: u64) -> Address {
    let family = if is_v6 == 1 { Family::V6 } else { Family::V4 };
    Address { family, high, low }
}
