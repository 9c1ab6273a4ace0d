//! Buckets in a set-associative table in an array: one cache line for each look-up.

use aya_ebpf::{
    bindings::BPF_F_MMAPABLE,
    btf_maps::{Array, PerCpuArray},
    macros::btf_map,
};
use limiter_common::{
    bucket::{Search, Swap, UpdateOutcome},
    counters::{LOSSY_EVICTIONS, TABLE_COUNTERS},
    key::BucketKey,
    table::{self, InsertOutcome, LineTable, TableLocation, WAYS, WhenFull},
    unit::{Unit, UnitTable},
};

use super::{BucketLocation, line::MapLine, units::MapUnits};
use crate::globals;

/// The loader sets the number of lines. Mappable, because the values of such an array start at a
/// page and not within a cache line.
#[btf_map]
static TABLE: Array<[u64; 2 * WAYS], 1, { BPF_F_MMAPABLE as usize }> = Array::new();

#[btf_map]
static STORE_COUNTS: PerCpuArray<u64, { TABLE_COUNTERS as usize }> = PerCpuArray::new();

#[inline(always)]
fn line(index: u32) -> Option<MapLine<WAYS>> {
    let line = TABLE.get_ptr_mut(index)?;
    // SAFETY: an element of the map: eight aligned words that are only changed atomically.
    Some(unsafe { MapLine::new(line.cast()) })
}

/// The table at one time.
struct TimedTable {
    now_ns: u64,
}

impl UnitTable for TimedTable {
    #[inline(always)]
    fn unit(&self, number: u32) -> Option<&Unit> {
        MapUnits.unit(number)
    }

    #[inline(always)]
    fn weight(&self, unit: u32, now_ns: u64, state: u64) -> u64 {
        MapUnits.weight(unit, now_ns, state)
    }
}

impl LineTable for TimedTable {
    #[inline(always)]
    fn now_ns(&self) -> u64 {
        self.now_ns
    }

    #[inline(always)]
    fn has_odd_units(&self) -> bool {
        globals::features().odd_units == 1
    }

    #[inline(always)]
    fn when_full(&self) -> WhenFull {
        const DENY_NEW: u32 = WhenFull::DenyNew as u32;
        const PASS_NEW: u32 = WhenFull::PassNew as u32;
        match globals::features().when_full {
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

/// The number of buckets in debt that this CPU has evicted.
#[inline(always)]
pub(super) fn lossy_evictions() -> u64 {
    STORE_COUNTS.get(LOSSY_EVICTIONS).copied().unwrap_or(0)
}

/// [`table::clear`] at a location.
#[inline(always)]
pub(super) fn clear(location: &TableLocation) -> UpdateOutcome {
    match line(location.line) {
        Some(line) => table::clear(&line, location.fingerprint),
        None => UpdateOutcome::Unavailable,
    }
}

#[inline(always)]
pub(super) fn find(
    key: &BucketKey,
    unit: u32,
    search: &mut Search,
    location: &mut TableLocation,
) -> u64 {
    let features = globals::features();
    let lines = features.table_lines;
    table::find(&features.hash_key, lines, line, key, unit, search, location)
}

/// Looks up a part of a bucket that [`find`] has looked up.
#[inline(always)]
pub(super) fn find_part(
    bucket: &TableLocation,
    number: u64,
    unit: u32,
    location: &mut TableLocation,
) -> u64 {
    let lines = globals::features().table_lines;
    table::find_part(lines, line, bucket, number, unit, location)
}

/// Looks up the bucket at a location again.
#[inline(always)]
pub(super) fn read(location: &mut TableLocation) -> u64 {
    table::find_again(line, location)
}

/// Implements [`limiter_common::bucket::BucketTable::swap`].
#[inline(always)]
pub(super) fn swap(location: &BucketLocation, now_ns: u64, seen: u64, wanted: u64) -> Swap {
    table::swap(
        line,
        &location.table,
        seen,
        wanted,
        || InsertOutcome::of_number(limiter_insert(location, now_ns, wanted)),
        || limiter_exchange(location, now_ns) == 1,
    )
}

/// Calls [`read`], for the loop over attempts.
#[unsafe(no_mangle)]
#[inline(never)]
pub(super) extern "C" fn limiter_read(location: *mut BucketLocation) -> u64 {
    // SAFETY: the verifier lets a caller pass null or a whole value, nothing else; the caller does
    // not use it meanwhile.
    match unsafe { location.as_mut() } {
        Some(location) => read(&mut location.table),
        None => 0,
    }
}

/// Calls [`swap`], for the loop over attempts; returns the number of a [`Swap`].
#[unsafe(no_mangle)]
#[inline(never)]
pub(super) extern "C" fn limiter_swap(
    location: *const BucketLocation,
    now_ns: u64,
    seen: u64,
    wanted: u64,
) -> u32 {
    // SAFETY: as in `limiter_insert`.
    let swapped = match unsafe { location.as_ref() } {
        Some(location) => swap(location, now_ns, seen, wanted),
        None => Swap::Unavailable,
    };
    swapped as u32
}

/// Calls [`table::insert`]; returns the number of an [`InsertOutcome`].
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn limiter_insert(location: *const BucketLocation, now_ns: u64, wanted: u64) -> u32 {
    // SAFETY: the verifier lets a caller pass null or a whole readable value, nothing else.
    let inserted = match unsafe { location.as_ref() } {
        Some(location) => match line(location.table.line) {
            Some(line) => table::insert(
                &line,
                &TimedTable { now_ns },
                location.table.fingerprint,
                wanted,
            ),
            None => InsertOutcome::Unavailable,
        },
        None => InsertOutcome::Unavailable,
    };
    inserted as u32
}

/// Calls [`table::exchange()`]; returns 1 for true.
#[unsafe(no_mangle)]
#[inline(never)]
pub(super) extern "C" fn limiter_exchange(location: *const BucketLocation, now_ns: u64) -> u32 {
    // SAFETY: as in `limiter_insert`.
    let changed = match unsafe { location.as_ref() } {
        Some(location) => line(location.table.line).is_some_and(|line| {
            table::exchange(&line, &MapUnits, location.table.fingerprint, now_ns)
        }),
        None => false,
    };
    u32::from(changed)
}
