//! Entries: the record of each counted connection and the index of its count.

use aya_ebpf::{bindings::BPF_F_MMAPABLE, btf_maps::Array, macros::btf_map};
use limiter_common::connection::{
    CountId, CountIds, MOST_LIMITS,
    entry::{self, CountedConnection, EntryInsertion, EntryTable, Name},
    line::{SLOTS, SlotMatches, line_of, slot_of},
};

use super::{
    counts::{self, MapCounts},
    words::Words,
};
use crate::globals;

/// Lines of entries. The loader sets their number. Mappable, like the counts.
#[btf_map]
static CONNECTIONS: Array<[u64; SLOTS], 1, { BPF_F_MMAPABLE as usize }> = Array::new();

/// The number of limits, a power of two.
const LIMITS: u32 = 1 << MOST_LIMITS.trailing_zeros();

struct MapEntries;

/// A line, if the policy counts connections.
#[inline(always)]
fn line(line: u32) -> Option<Words> {
    CONNECTIONS.get_ptr_mut(line).map(Words::new)
}

impl EntryTable for MapEntries {
    #[inline(always)]
    fn search(&self, line: u32, sought: u64) -> SlotMatches {
        SlotMatches::of_number(limiter_search_entries(line, sought))
    }

    #[inline(always)]
    fn get(&self, at: u32) -> u64 {
        line(line_of(at)).map_or(0, |line| line.load(slot_of(at)))
    }

    #[inline(always)]
    fn compare_and_swap(&self, at: u32, seen: u64, wanted: u64) -> bool {
        line(line_of(at)).is_some_and(|line| line.compare_and_swap(slot_of(at), seen, wanted))
    }

    #[inline(always)]
    fn find(&self, CountedConnection { name, limit }: CountedConnection) -> Option<u32> {
        limiter_find_entry(name.0, limit).checked_sub(1)
    }

    #[inline(always)]
    fn insert(
        &self,
        CountedConnection { name, limit }: CountedConnection,
        count: u32,
    ) -> EntryInsertion {
        EntryInsertion::of_number(limiter_insert_entry(name.0, limit, count))
    }
}

/// Makes a connection count under these count ids, and only there.
#[inline(always)]
pub(super) fn settle(cookie: u64, count_ids: &CountIds) {
    let name = limiter_name(cookie);
    for (limit, count_id) in (0..).zip(count_ids.0) {
        limiter_settle_entry(name, limit, count_id);
    }
}

/// Subtracts a connection from all its counts.
#[inline(always)]
pub(super) fn close(cookie: u64) {
    let name = limiter_name(cookie);
    // Limits of an earlier policy may count it too.
    for limit in 0..LIMITS {
        limiter_close_entry(name, limit);
    }
}

/// Calls [`Name::new`].
///
/// Like the functions below, it is a global function of the BPF object: the verifier walks it once,
/// for any arguments.
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn limiter_name(cookie: u64) -> u64 {
    Name::new(&globals::features().hash_key, cookie).0
}

/// Calls [`entry::search`]; returns the [`SlotMatches`] as a number.
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn limiter_search_entries(number: u32, sought: u64) -> u32 {
    line(number).map_or(0, |line| entry::search(&line, sought).number())
}

/// Calls [`entry::find`]; returns the index plus 1, or 0 for none.
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn limiter_find_entry(name: u64, limit: u32) -> u32 {
    entry::find(&MapEntries, counted(name, limit)).map_or(0, |at| at + 1)
}

/// Calls [`entry::insert`]; returns the number of an [`EntryInsertion`].
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn limiter_insert_entry(name: u64, limit: u32, count: u32) -> u32 {
    entry::insert(&MapEntries, counted(name, limit), count) as u32
}

/// Calls [`entry::settle`]; returns 0.
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn limiter_settle_entry(name: u64, limit: u32, count_id: u64) -> u32 {
    if !entry::settle(
        &MapEntries,
        &MapCounts,
        counted(name, limit),
        CountId(count_id),
    ) {
        counts::uncounted();
    }
    0
}

/// Calls [`entry::close`]; returns 0.
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn limiter_close_entry(name: u64, limit: u32) -> u32 {
    entry::close(&MapEntries, &MapCounts, counted(name, limit));
    0
}

#[inline(always)]
const fn counted(name: u64, limit: u32) -> CountedConnection {
    CountedConnection {
        name: Name(name),
        limit: limit % LIMITS,
    }
}
