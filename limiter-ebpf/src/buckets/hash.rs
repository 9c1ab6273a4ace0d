//! Buckets in the kernel's LRU hash map: exact keys, readable with `bpftool map dump`.

use aya_ebpf::{bindings::BPF_NOEXIST, btf_maps::LruHashMap, macros::btf_map};
use limiter_common::{
    bucket::Updated,
    owner::BucketKey,
    strategy::Change,
    table::{self, AGAIN, IN_ANOTHER_UNIT, MISSING},
};

use super::{Charge, Found, line::MapLine, units::MapUnits};

/// Each is a line of one way. The key tells whose it is, so what names it there is the number of
/// its unit alone. The loader sets the capacity.
#[btf_map]
static BUCKETS: LruHashMap<BucketKey, [u64; 2], 1> = LruHashMap::new();

/// `-EEXIST`: the bucket is there in another unit, or another CPU made it first.
const ALREADY_THERE: i32 = -17;

/// The bucket's line, if there is one.
///
/// The key must be a copy on the stack of the function that calls it: until Linux 6.2 the verifier
/// refuses what another function has handed over as a map's key.
#[inline(always)]
fn line(key: &BucketKey) -> Option<MapLine<1>> {
    let bucket = BUCKETS.get_ptr_mut(key)?;
    // SAFETY: an element of the map, two aligned words that are only changed so.
    Some(unsafe { MapLine::new(bucket.cast()) })
}

/// The state of the bucket in its unit; 0 when there is none.
#[inline(always)]
pub(super) fn read(found: &Found) -> u64 {
    match line(&{ found.key }) {
        Some(line) => table::read(&line, found.spot.name).1,
        None => 0,
    }
}

/// Whether the bucket is there, in whatever unit.
#[inline(always)]
pub(super) fn is_there(found: &Found) -> bool {
    line(&{ found.key }).is_some()
}

/// [`table::clear`] of the bucket.
#[inline(always)]
pub(super) fn clear(found: &Found) -> Updated {
    match line(&{ found.key }) {
        Some(line) => table::clear(&line, found.spot.name),
        None => Updated::Declined,
    }
}

/// Changes the bucket if it is there: a step of [`table::update`].
#[inline(always)]
pub(super) fn change(charge: &Charge, wanted: Change) -> u32 {
    match line(&{ charge.found.key }) {
        Some(line) => table::change(&line, charge.found.spot.name, wanted),
        None => MISSING,
    }
}

/// Makes the bucket if it is not there; a step, too.
#[inline(always)]
pub(super) fn insert(charge: &Charge, wanted: Change) -> u32 {
    if wanted.is_refund() {
        // The bucket is gone, and so is its debt.
        return Updated::Stored as u32;
    }
    let decision = wanted.apply(0);
    if !decision.passes() {
        return Updated::Declined as u32;
    }
    let bucket = [charge.found.spot.name, decision.state];
    match BUCKETS.insert(charge.found.key, bucket, u64::from(BPF_NOEXIST)) {
        Ok(()) => Updated::Stored as u32,
        Err(ALREADY_THERE) => IN_ANOTHER_UNIT,
        Err(_) => Updated::Unavailable as u32,
    }
}

/// Exchanges the bucket, which is there in another unit; a step, too.
#[inline(always)]
pub(super) fn exchange(charge: &Charge, wanted: Change) -> u32 {
    match line(&{ charge.found.key }) {
        Some(line) => {
            let name = charge.found.spot.name;
            table::exchange(&line, &MapUnits, name, charge.now_ns, wanted)
        }
        None => AGAIN,
    }
}
