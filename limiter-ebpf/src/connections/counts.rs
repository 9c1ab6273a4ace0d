//! The number of open connections of each key.

use aya_ebpf::{bindings::BPF_F_MMAPABLE, btf_maps::Array, macros::btf_map};
use limiter_common::connection::{
    CountId,
    count::{self, CountTable},
    line::{SLOTS, SlotMatches, line_of, slot_of},
};

use super::words::Words;
use crate::buckets::atomic;

/// Lines of counts. The loader sets their number. Mappable, because the values of such an array start
/// at a page and not within a cache line.
#[btf_map]
static CONNECTION_COUNTS: Array<[u64; SLOTS], 1, { BPF_F_MMAPABLE as usize }> = Array::new();

/// The number of connections that a limit could not count for lack of room.
#[btf_map]
static UNCOUNTED: Array<u64, 1> = Array::new();

pub(super) struct MapCounts;

/// A line, if the policy counts connections.
#[inline(always)]
fn line(line: u32) -> Option<Words> {
    CONNECTION_COUNTS.get_ptr_mut(line).map(Words::new)
}

impl CountTable for MapCounts {
    #[inline(always)]
    fn search(&self, line: u32, count_id: CountId) -> SlotMatches {
        SlotMatches::of_number(limiter_search_counts(line, count_id.0))
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
    fn count_down(&self, at: u32) -> u64 {
        line(line_of(at)).map_or(0, |line| line.count_down(slot_of(at)))
    }

    #[inline(always)]
    fn try_to_add(&self, count_id: CountId, attempt: u32) -> u32 {
        limiter_try_to_count(count_id.0, attempt)
    }

    #[inline(always)]
    fn add(&self, count_id: CountId) -> Option<u32> {
        limiter_add_connection(count_id.0).checked_sub(1)
    }

    #[inline(always)]
    fn take_off(&self, at: u32) {
        limiter_take_off_connection(at);
    }
}

/// The number of open connections under a count id.
#[inline(always)]
pub(super) fn open(count_id: CountId) -> u64 {
    let [first, second] = count_id.lines();
    limiter_open_in_line(first, count_id.0) + limiter_open_in_line(second, count_id.0)
}

/// Calls [`count::open_in`].
///
/// Like the functions below, it is a global function of the BPF object: the verifier walks it once, for any arguments.
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn limiter_open_in_line(number: u32, count_id: u64) -> u64 {
    line(number).map_or(0, |line| count::open_in(&line, CountId(count_id)))
}

/// Calls [`count::search`]; returns the [`SlotMatches`] as a number.
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn limiter_search_counts(number: u32, count_id: u64) -> u32 {
    line(number).map_or(0, |line| count::search(&line, CountId(count_id)).number())
}

/// Calls [`count::add`]; returns the index plus 1, or 0 for none.
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn limiter_add_connection(count_id: u64) -> u32 {
    count::add(&MapCounts, CountId(count_id)).map_or(0, |at| at + 1)
}

/// Calls [`count::try_to_add`].
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn limiter_try_to_count(count_id: u64, attempt: u32) -> u32 {
    count::try_to_add(&MapCounts, CountId(count_id), attempt)
}

/// Calls [`count::take_off`]; returns 0.
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn limiter_take_off_connection(at: u32) -> u32 {
    count::take_off(&MapCounts, at);
    0
}

/// Counts a connection that a limit could not count for lack of room.
#[inline(always)]
pub(super) fn uncounted() {
    if let Some(count) = UNCOUNTED.get_ptr_mut(0) {
        // SAFETY: the map's element, an aligned word that is only changed atomically.
        unsafe { atomic::add(count, 1) };
    }
}
