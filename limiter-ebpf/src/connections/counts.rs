//! How many connections each owner has open.

use aya_ebpf::{bindings::BPF_F_MMAPABLE, btf_maps::Array, macros::btf_map};
use limiter_common::connection::{self, HALF, Place, Places, SLOTS, Slots};

use crate::{buckets::atomic, globals};

/// Lines of counts. The loader sets their number. Mappable, because the values of such an array start
/// at a page and not within a cache line.
#[btf_map]
static CONNECTION_COUNTS: Array<[u64; SLOTS], 1, { BPF_F_MMAPABLE as usize }> = Array::new();

/// How many connections were not counted by a limit for want of room.
#[btf_map]
static UNCOUNTED: Array<u64, 1> = Array::new();

struct MapLine(*mut u64);

impl MapLine {
    #[inline(always)]
    const fn word(&self, slot: usize) -> *mut u64 {
        self.0.wrapping_add(slot % SLOTS)
    }
}

impl Slots for MapLine {
    #[inline(always)]
    fn get(&self, slot: usize) -> u64 {
        // SAFETY: a word of the line, which stays mapped and is only changed atomically.
        unsafe { atomic::load(self.word(slot)) }
    }

    #[inline(always)]
    fn compare_and_swap(&self, slot: usize, seen: u64, wanted: u64) -> bool {
        // SAFETY: as above.
        unsafe { atomic::compare_and_swap(self.word(slot), seen, wanted) }
    }
}

/// Returns the line of a place, if the policy counts connections.
#[inline(always)]
#[expect(clippy::cast_possible_truncation, reason = "the number of lines fits")]
fn line(place: Place) -> Option<MapLine> {
    let lines = globals::shape().connection_lines as u32;
    let line = CONNECTION_COUNTS.get_ptr_mut(place.line(lines))?;
    Some(MapLine(line.cast()))
}

/// Returns how many connections are open at a place.
#[inline(always)]
pub(super) fn open(place: Place) -> u64 {
    limiter_open_in_half(place.0, 0) + limiter_open_in_half(place.0, 1)
}

/// Calls [`connection::open_in_half`]: LLVM reads all words first, and a whole line's take more stack than
/// there is.
///
/// Like those below, it is a global function of the BPF object: the verifier walks it once, for any
/// arguments.
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn limiter_open_in_half(place: u64, half: u32) -> u64 {
    let place = Place(place);
    let first = if half == 0 { 0 } else { HALF };
    line(place).map_or(0, |line| connection::open_in_half(&line, place, first))
}

/// Counts a connection at its places, and leaves those where there was room.
#[inline(always)]
pub(super) fn add(places: &mut Places) {
    for place in &mut places.0 {
        *place = limiter_add_connection(*place);
    }
}

/// Calls [`connection::add`] on a place, which may be none; returns the place, or 0 if it was not
/// counted.
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn limiter_add_connection(place: u64) -> u64 {
    let place = Place(place);
    if place.0 == 0 {
        return 0;
    }
    if line(place).is_some_and(|line| connection::add(&line, place)) {
        return place.0;
    }
    uncounted();
    0
}

/// Takes a connection off its places.
#[inline(always)]
pub(super) fn take_off(places: &Places) {
    for place in places.0 {
        limiter_take_off_connection(place);
    }
}

/// Calls [`connection::take_off`] on a place, which may be none; returns 1 if it was counted.
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn limiter_take_off_connection(place: u64) -> u32 {
    let place = Place(place);
    let is_taken_off =
        place.0 != 0 && line(place).is_some_and(|line| connection::take_off(&line, place));
    u32::from(is_taken_off)
}

/// Counts a connection that was not counted for want of room.
#[inline(always)]
pub(super) fn uncounted() {
    if let Some(count) = UNCOUNTED.get_ptr_mut(0) {
        // SAFETY: the map's element, an aligned word that is only changed atomically.
        unsafe { atomic::add(count, 1) };
    }
}
