//! Buckets in the kernel's LRU hash map: exact keys, readable with `bpftool map dump`.

use aya_ebpf::{bindings::BPF_NOEXIST, btf_maps::LruHashMap, macros::btf_map};
use limiter_common::{
    bucket::{ATTEMPTS, Decide, Search, Swap, UpdateOutcome},
    key::BucketKey,
    table::{self, InsertOutcome, Line as _},
};

use super::{BucketLocation, line::MapLine, units::MapUnits};

/// Each bucket is a line of one way. The map's key is the bucket's key, so the fingerprint in the line
/// is only the number of the unit. The loader sets the capacity.
#[btf_map]
static BUCKETS: LruHashMap<BucketKey, [u64; 2], 1> = LruHashMap::new();

/// `-EEXIST`: the bucket exists in another unit, or another CPU created it first.
const ALREADY_THERE: i32 = -17;

/// The bucket's line, if it exists.
///
/// The key must be a copy on the calling function's stack: before Linux 6.2 the verifier refuses a
/// function's argument as a map's key.
#[inline(always)]
fn line(key: &BucketKey) -> Option<MapLine<1>> {
    let bucket = BUCKETS.get_ptr_mut(key)?;
    // SAFETY: an element of the map, two aligned words that are only changed atomically.
    Some(unsafe { MapLine::new(bucket.cast()) })
}

/// The only way of a line; in [`BucketLocation`], the way of a bucket after its look-up.
pub(super) const LOOKED_UP: usize = 0;

/// Looks up a bucket. For the only bucket of a packet, [`update`] does the look-up instead: a
/// look-up costs as much as the rest of a decision.
#[inline(always)]
pub(super) fn find(
    key: &BucketKey,
    unit: u32,
    search: &Search,
    location: &mut BucketLocation,
) -> u64 {
    location.key = *key;
    location.table.fingerprint = unit.into();
    if search.single == 1 {
        location.table.way = LOOKED_UP + 1;
        return 0;
    }
    read(location)
}

/// Looks up a part of a bucket that [`find`] was called for.
#[inline(always)]
pub(super) fn find_part(
    bucket: &BucketLocation,
    number: u64,
    unit: u32,
    location: &mut BucketLocation,
) -> u64 {
    let key = bucket.key.of_part(number);
    let state = match line(&key) {
        Some(line) => table::read(&line, unit.into()).1,
        None => 0,
    };
    location.key = key;
    location.table.fingerprint = unit.into();
    location.table.way = LOOKED_UP;
    state
}

/// Returns the state of the bucket in its unit; 0 if it is missing.
#[inline(always)]
pub(super) fn read(location: &mut BucketLocation) -> u64 {
    location.table.way = LOOKED_UP;
    limiter_read_hash(location)
}

/// Implements [`limiter_common::bucket::BucketTable::swap`].
#[inline(always)]
pub(super) fn swap(location: &BucketLocation, now_ns: u64, seen: u64, wanted: u64) -> Swap {
    if location.table.way == LOOKED_UP {
        Swap::of_number(limiter_swap_hash(location, now_ns, seen, wanted))
    } else {
        Swap::Changed
    }
}

/// Implements [`limiter_common::bucket::BucketTable::update`] with one look-up for each attempt.
#[inline(always)]
pub(super) fn update(
    location: &mut BucketLocation,
    now_ns: u64,
    decide: &mut impl Decide<BucketLocation>,
) -> UpdateOutcome {
    for _ in 0..ATTEMPTS {
        let line = line(&{ location.key });
        let seen = match &line {
            Some(line) => table::read(line, location.table.fingerprint).1,
            None => 0,
        };
        let swap = |wanted| swap_in(line, location, now_ns, seen, wanted);
        if let Some(updated) = decide.decide(location, seen).carry_out(seen, swap) {
            return updated;
        }
    }
    UpdateOutcome::Contended
}

/// Replaces the state of a bucket in its line, or inserts it if it has no line.
#[inline(always)]
fn swap_in(
    line: Option<MapLine<1>>,
    location: &BucketLocation,
    now_ns: u64,
    seen: u64,
    wanted: u64,
) -> Swap {
    let fingerprint = location.table.fingerprint;
    match line {
        Some(line) if line.fingerprint(LOOKED_UP) == fingerprint => {
            table::swap_in_line(&line, LOOKED_UP, fingerprint, seen, wanted)
        }
        // The bucket no longer exists.
        None if seen != 0 => Swap::Changed,
        None => InsertOutcome::of_number(limiter_insert_hash(location, wanted))
            .or_exchange(|| limiter_exchange_hash(location, now_ns) == 1),
        Some(_) => {
            InsertOutcome::Exists.or_exchange(|| limiter_exchange_hash(location, now_ns) == 1)
        }
    }
}

/// [`table::clear`] for this bucket.
#[inline(always)]
pub(super) fn clear(location: &BucketLocation) -> UpdateOutcome {
    match line(&{ location.key }) {
        Some(line) => table::clear(&line, location.table.fingerprint),
        None => UpdateOutcome::Declined,
    }
}

/// Returns the state of a bucket in its unit; 0 if it is missing.
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn limiter_read_hash(location: *const BucketLocation) -> u64 {
    // SAFETY: the verifier lets a caller pass null or a whole readable value, nothing else.
    match unsafe { location.as_ref() } {
        Some(location) => match line(&{ location.key }) {
            Some(line) => table::read(&line, location.table.fingerprint).1,
            None => 0,
        },
        None => 0,
    }
}

/// Calls [`find_part`].
#[unsafe(no_mangle)]
#[inline(never)]
pub(super) extern "C" fn limiter_find_part_hash(
    bucket: *const BucketLocation,
    number: u64,
    unit: u32,
    location: *mut BucketLocation,
) -> u64 {
    // SAFETY: as in `limiter_read_hash`; the two do not overlap.
    let (Some(bucket), Some(location)) = (unsafe { (bucket.as_ref(), location.as_mut()) }) else {
        return 0;
    };
    find_part(bucket, number, unit, location)
}

/// Calls [`swap_in`]; returns the number of a [`Swap`].
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn limiter_swap_hash(
    location: *const BucketLocation,
    now_ns: u64,
    seen: u64,
    wanted: u64,
) -> u32 {
    // SAFETY: as in `limiter_read_hash`.
    let swapped = match unsafe { location.as_ref() } {
        Some(location) => swap_in(line(&{ location.key }), location, now_ns, seen, wanted),
        None => Swap::Unavailable,
    };
    swapped as u32
}

/// Inserts a bucket; returns the number of an [`InsertOutcome`].
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn limiter_insert_hash(location: *const BucketLocation, wanted: u64) -> u32 {
    // SAFETY: as in `limiter_read_hash`.
    let inserted = match unsafe { location.as_ref() } {
        Some(location) => {
            let bucket = [location.table.fingerprint, wanted];
            match BUCKETS.insert(location.key, bucket, u64::from(BPF_NOEXIST)) {
                Ok(()) => InsertOutcome::Stored,
                Err(ALREADY_THERE) => InsertOutcome::Exists,
                Err(_) => InsertOutcome::Unavailable,
            }
        }
        None => InsertOutcome::Unavailable,
    };
    inserted as u32
}

/// Calls [`table::exchange()`] on a bucket; returns 1 for true.
#[unsafe(no_mangle)]
#[inline(never)]
pub(super) extern "C" fn limiter_exchange_hash(
    location: *const BucketLocation,
    now_ns: u64,
) -> u32 {
    // SAFETY: as in `limiter_read_hash`.
    let changed = match unsafe { location.as_ref() } {
        Some(location) => line(&{ location.key }).is_some_and(|line| {
            table::exchange(&line, &MapUnits, location.table.fingerprint, now_ns)
        }),
        None => false,
    };
    u32::from(changed)
}
