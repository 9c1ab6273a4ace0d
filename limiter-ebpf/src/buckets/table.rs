//! Buckets in a set-associative table in an array: one cache line for each look-up.

use aya_ebpf::{
    bindings::{BPF_F_MMAPABLE, BPF_F_RDONLY_PROG},
    btf_maps::{Array, PerCpuArray},
    macros::btf_map,
};
use limiter_common::{
    bucket::{BucketKey, Search, Updated},
    counters::{LOSSY_EVICTIONS, STORE_COUNTERS},
    gcra::Change,
    table::{self, Line, LineStore, Spot, WAYS, WhenFull},
    unit::{MAX_UNITS, ODD_TICK, Unit},
};

use super::{Charge, Found, SPEND, atomic, limiter_insert, limiter_update_table};
use crate::globals;

/// The loader sets how many there are. Mappable, because the lines of such an array start at a
/// page and not somewhere in a cache line.
#[btf_map]
static TABLE: Array<[u64; 2 * WAYS], 1, { BPF_F_MMAPABLE as usize }> = Array::new();

/// By number, for all policies whose buckets there are.
#[btf_map]
static UNITS: Array<Unit, { MAX_UNITS as usize }, { BPF_F_RDONLY_PROG as usize }> = Array::new();

#[btf_map]
static STORE_COUNTS: PerCpuArray<u64, { STORE_COUNTERS as usize }> = PerCpuArray::new();

/// Names at even places, states at odd ones.
struct MapLine(*mut u64);

impl MapLine {
    #[inline(always)]
    fn at(index: u32) -> Option<Self> {
        TABLE.get_ptr_mut(index).map(|line| Self(line.cast()))
    }
}

impl Line for MapLine {
    #[inline(always)]
    fn name(&self, way: usize) -> u64 {
        // SAFETY: `way` is below WAYS, so the word is the line's: aligned, and in the map.
        unsafe { atomic::load(self.0.add(2 * way)) }
    }

    #[inline(always)]
    fn state(&self, way: usize) -> u64 {
        // SAFETY: as in `name`.
        unsafe { atomic::load(self.0.add(2 * way + 1)) }
    }

    #[inline(always)]
    fn set_name(&self, way: usize, name: u64) {
        // SAFETY: as in `name`.
        unsafe { atomic::store(self.0.add(2 * way), name) };
    }

    #[inline(always)]
    fn set_state(&self, way: usize, state: u64) {
        // SAFETY: as in `name`.
        unsafe { atomic::store(self.0.add(2 * way + 1), state) };
    }

    #[inline(always)]
    fn compare_and_swap_state(&self, way: usize, seen: u64, new: u64) -> bool {
        // SAFETY: as in `name`.
        unsafe { atomic::compare_and_swap(self.0.add(2 * way + 1), seen, new) }
    }
}

/// The table at one time.
struct At {
    now_ns: u64,
}

impl LineStore for At {
    #[inline(always)]
    fn debt_ns(&self, name: u64, state: u64) -> u64 {
        // Mostly all limits count in nanoseconds, and then nothing is left of the rest.
        if globals::shape().odd_ticks == 1 {
            let unit = table::unit_of(name);
            if unit & ODD_TICK != 0
                && let Some(unit) = UNITS.get(unit)
            {
                return unit.debt_ns(self.now_ns, state);
            }
        }
        state.saturating_sub(self.now_ns)
    }

    #[inline(always)]
    fn count_lossy_eviction(&self) {
        if let Some(count) = STORE_COUNTS.get_ptr_mut(LOSSY_EVICTIONS) {
            // SAFETY: this CPU's own element; XDP programs do not preempt each other on a CPU.
            unsafe { *count = (*count).wrapping_add(1) };
        }
    }
}

#[inline(always)]
pub(super) fn find(key: &BucketKey, unit: u32, search: &mut Search, spot: &mut Spot) -> u64 {
    let shape = globals::shape();
    let lines = shape.table_lines;
    table::find(&shape.hash_key, lines, MapLine::at, key, unit, search, spot)
}

/// Charges the bucket that [`find`] has looked for.
#[inline(always)]
pub(super) fn spend(charge: &Charge) -> Updated {
    let Charge {
        found: Found { spot, .. },
        seen,
        spend,
        ..
    } = charge;
    match MapLine::at(spot.line) {
        Some(line) => table::spend(
            &line,
            *spot,
            *seen,
            spend,
            || limiter_insert(charge, SPEND),
            || Updated::of_number(limiter_update_table(charge, SPEND)),
        ),
        None => Updated::Unavailable,
    }
}

#[inline(always)]
pub(super) fn change(charge: &Charge, wanted: Change) -> u32 {
    let spot = &charge.found.spot;
    match MapLine::at(spot.line) {
        Some(line) => table::change(&line, spot.name, wanted),
        None => Updated::Unavailable as u32,
    }
}

#[inline(always)]
pub(super) fn insert(charge: &Charge, wanted: Change) -> u32 {
    const DENY_NEW: u32 = WhenFull::DenyNew as u32;
    const PASS_NEW: u32 = WhenFull::PassNew as u32;
    let when_full = match globals::shape().when_full {
        DENY_NEW => WhenFull::DenyNew,
        PASS_NEW => WhenFull::PassNew,
        _ => WhenFull::Evict,
    };
    let store = At {
        now_ns: charge.now_ns,
    };
    let spot = &charge.found.spot;
    match MapLine::at(spot.line) {
        Some(line) => table::insert(&line, &store, spot.name, wanted, when_full),
        None => Updated::Unavailable as u32,
    }
}
