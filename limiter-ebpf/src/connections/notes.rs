//! Notes: the record of each counted connection and the place of its count.

use aya_ebpf::{bindings::BPF_F_MMAPABLE, btf_maps::Array, macros::btf_map};
use limiter_common::connection::{
    MOST_LIMITS, Place, Places,
    line::{SLOTS, SlotMatches, line_of, slot_of},
    note::{self, CountedConnection, Name, NoteInsertion, Notes},
};

use super::{
    counts::{self, MapCounts},
    words::Words,
};
use crate::globals;

/// Lines of notes. The loader sets their number. Mappable, like the counts.
#[btf_map]
static CONNECTIONS: Array<[u64; SLOTS], 1, { BPF_F_MMAPABLE as usize }> = Array::new();

/// The number of limits, a power of two.
const LIMITS: u32 = 1 << MOST_LIMITS.trailing_zeros();

struct MapNotes;

/// A line, if the policy counts connections.
#[inline(always)]
fn line(line: u32) -> Option<Words> {
    CONNECTIONS.get_ptr_mut(line).map(Words::new)
}

impl Notes for MapNotes {
    #[inline(always)]
    fn search(&self, line: u32, sought: u64) -> SlotMatches {
        SlotMatches::of_number(limiter_look_at_notes(line, sought))
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
        limiter_find_note(name.0, limit).checked_sub(1)
    }

    #[inline(always)]
    fn insert(
        &self,
        CountedConnection { name, limit }: CountedConnection,
        count: u32,
    ) -> NoteInsertion {
        NoteInsertion::of_number(limiter_insert_note(name.0, limit, count))
    }
}

/// Makes a connection count at these places, and only there.
#[inline(always)]
pub(super) fn settle(cookie: u64, places: &Places) {
    let name = limiter_name(cookie);
    for (limit, place) in (0..).zip(places.0) {
        limiter_settle_note(name, limit, place);
    }
}

/// Subtracts a connection from all its counts.
#[inline(always)]
pub(super) fn close(cookie: u64) {
    let name = limiter_name(cookie);
    // Limits of an earlier policy may count it too.
    for limit in 0..LIMITS {
        limiter_close_note(name, limit);
    }
}

/// Calls [`Name::new`].
///
/// Like the functions below, it is a global function of the BPF object: the verifier walks it once,
/// for any arguments.
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn limiter_name(cookie: u64) -> u64 {
    Name::new(&globals::shape().hash_key, cookie).0
}

/// Calls [`note::search`]; returns the [`SlotMatches`] as a number.
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn limiter_look_at_notes(number: u32, sought: u64) -> u32 {
    line(number).map_or(0, |line| note::search(&line, sought).number())
}

/// Calls [`note::find`]; returns the index plus 1, or 0 for none.
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn limiter_find_note(name: u64, limit: u32) -> u32 {
    note::find(&MapNotes, counted(name, limit)).map_or(0, |at| at + 1)
}

/// Calls [`note::insert`]; returns the number of a [`NoteInsertion`].
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn limiter_insert_note(name: u64, limit: u32, count: u32) -> u32 {
    note::insert(&MapNotes, counted(name, limit), count) as u32
}

/// Calls [`note::settle`]; returns 0.
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn limiter_settle_note(name: u64, limit: u32, place: u64) -> u32 {
    if !note::settle(&MapNotes, &MapCounts, counted(name, limit), Place(place)) {
        counts::uncounted();
    }
    0
}

/// Calls [`note::close`]; returns 0.
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn limiter_close_note(name: u64, limit: u32) -> u32 {
    note::close(&MapNotes, &MapCounts, counted(name, limit));
    0
}

#[inline(always)]
const fn counted(name: u64, limit: u32) -> CountedConnection {
    CountedConnection {
        name: Name(name),
        limit: limit % LIMITS,
    }
}
