//! Buckets in a set-associative table in an array: one cache line for each look-up.

use aya_ebpf::{
    bindings::BPF_F_MMAPABLE,
    btf_maps::{Array, PerCpuArray},
    macros::btf_map,
};
use limiter_common::{
    bucket::{Search, Updated},
    counters::{LOSSY_EVICTIONS, STORE_COUNTERS},
    owner::BucketKey,
    strategy::Change,
    table::{self, LineStore, Spot, WAYS, WhenFull},
    unit::{KnownUnits, Unit},
};

use super::{Charge, Found, SPEND, limiter_insert, limiter_update, line::MapLine, units::MapUnits};
use crate::globals;

/// The loader sets how many there are. Mappable, because the lines of such an array start at a
/// page and not somewhere in a cache line.
#[btf_map]
static TABLE: Array<[u64; 2 * WAYS], 1, { BPF_F_MMAPABLE as usize }> = Array::new();

#[btf_map]
static STORE_COUNTS: PerCpuArray<u64, { STORE_COUNTERS as usize }> = PerCpuArray::new();

/// The line of that index.
#[inline(always)]
fn line(index: u32) -> Option<MapLine<WAYS>> {
    let line = TABLE.get_ptr_mut(index)?;
    // SAFETY: an element of the map: eight aligned words that are only changed so.
    Some(unsafe { MapLine::new(line.cast()) })
}

/// The table at one time.
struct At {
    now_ns: u64,
}

impl KnownUnits for At {
    #[inline(always)]
    fn unit(&self, number: u32) -> Option<&Unit> {
        MapUnits.unit(number)
    }

    #[inline(always)]
    fn weight(&self, unit: u32, now_ns: u64, state: u64) -> u64 {
        MapUnits.weight(unit, now_ns, state)
    }
}

impl LineStore for At {
    #[inline(always)]
    fn now_ns(&self) -> u64 {
        self.now_ns
    }

    #[inline(always)]
    fn has_odd_units(&self) -> bool {
        globals::shape().odd_units == 1
    }

    #[inline(always)]
    fn when_full(&self) -> WhenFull {
        const DENY_NEW: u32 = WhenFull::DenyNew as u32;
        const PASS_NEW: u32 = WhenFull::PassNew as u32;
        match globals::shape().when_full {
            DENY_NEW => WhenFull::DenyNew,
            PASS_NEW => WhenFull::PassNew,
            _ => WhenFull::Evict,
        }
    }

    #[inline(always)]
    fn count_lossy_eviction(&self) {
        if let Some(count) = STORE_COUNTS.get_ptr_mut(LOSSY_EVICTIONS) {
            // SAFETY: this CPU's own element; XDP programs do not preempt each other on a CPU.
            unsafe { *count = (*count).wrapping_add(1) };
        }
    }
}

/// How many buckets this CPU has forgotten while they were in debt.
#[inline(always)]
pub(super) fn lossy_evictions() -> u64 {
    STORE_COUNTS.get(LOSSY_EVICTIONS).copied().unwrap_or(0)
}

/// Whether the bucket in a spot is there, in whatever unit.
#[inline(always)]
pub(super) fn is_there(spot: &Spot) -> bool {
    line(spot.line).is_some_and(|line| table::is_there(&line, spot.name))
}

/// [`table::clear`], [`table::mark`] and [`table::free`] of what is in a spot.
#[inline(always)]
pub(super) fn clear(spot: &Spot) -> Updated {
    match line(spot.line) {
        Some(line) => table::clear(&line, spot.name),
        None => Updated::Unavailable,
    }
}

#[inline(always)]
pub(super) fn mark(spot: &Spot) -> Updated {
    match line(spot.line) {
        Some(line) => table::mark(&line, spot.way, spot.name),
        None => Updated::Unavailable,
    }
}

#[inline(always)]
pub(super) fn free(spot: &Spot, seen: u64) -> Updated {
    match line(spot.line) {
        Some(line) => table::free(&line, spot.way, seen),
        None => Updated::Unavailable,
    }
}

#[inline(always)]
pub(super) fn find(key: &BucketKey, unit: u32, search: &mut Search, spot: &mut Spot) -> u64 {
    let shape = globals::shape();
    let lines = shape.table_lines;
    table::find(&shape.hash_key, lines, line, key, unit, search, spot)
}

/// Looks for a stamp of a bucket that [`find`] has looked for.
#[inline(always)]
pub(super) fn find_stamp(bucket: &Spot, number: u64, unit: u32, spot: &mut Spot) -> u64 {
    table::find_stamp(
        globals::shape().table_lines,
        line,
        bucket,
        number,
        unit,
        spot,
    )
}

/// The state of the bucket in a spot; 0 when it is not there any more.
#[inline(always)]
pub(super) fn read(spot: &Spot) -> u64 {
    match line(spot.line) {
        Some(line) => table::read(&line, spot.name).1,
        None => 0,
    }
}

/// Charges the bucket of GCRA that [`find`] has looked for.
#[inline(always)]
pub(super) fn spend(charge: &Charge) -> Updated {
    let Charge {
        found: Found { spot, .. },
        seen,
        spend,
        ..
    } = charge;
    match line(spot.line) {
        Some(line) => table::spend(
            &line,
            *spot,
            *seen,
            &spend.gcra(),
            || limiter_insert(charge, SPEND),
            || Updated::of_number(limiter_update(charge, SPEND)),
        ),
        None => Updated::Unavailable,
    }
}

#[inline(always)]
pub(super) fn change(charge: &Charge, wanted: Change) -> u32 {
    let spot = &charge.found.spot;
    match line(spot.line) {
        Some(line) => table::change(&line, spot.name, wanted),
        None => Updated::Unavailable as u32,
    }
}

#[inline(always)]
pub(super) fn insert(charge: &Charge, wanted: Change) -> u32 {
    let store = At {
        now_ns: charge.now_ns,
    };
    let spot = &charge.found.spot;
    match line(spot.line) {
        Some(line) => table::insert(&line, &store, spot.name, wanted),
        None => Updated::Unavailable as u32,
    }
}

#[inline(always)]
pub(super) fn exchange(charge: &Charge, wanted: Change) -> u32 {
    let spot = &charge.found.spot;
    match line(spot.line) {
        Some(line) => table::exchange(&line, &MapUnits, spot.name, charge.now_ns, wanted),
        None => Updated::Unavailable as u32,
    }
}
