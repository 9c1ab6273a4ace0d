//! Buckets, in the store that the policy's shape says: the other one is not even verified.

pub(crate) mod atomic;
mod hash;
mod table;

use limiter_common::{
    bucket::{BucketKey, BucketStore, Updated},
    charge::Charge,
    gcra::Change,
};

use crate::globals;

pub(crate) struct MapBuckets;

impl BucketStore for MapBuckets {
    #[inline(always)]
    fn locate(&self, charge: &mut Charge) {
        if in_table() && charge.located != charge.key.owner_kind() {
            charge.place = limiter_place(&raw const charge.key);
            charge.located = charge.key.owner_kind();
        }
    }

    #[inline(always)]
    fn read(&self, charge: &Charge) -> Option<u64> {
        match limiter_read_bucket(charge) {
            0 => None,
            state => Some(state),
        }
    }

    #[inline(always)]
    fn spend(&self, charge: &Charge) -> Updated {
        Updated::of_number(limiter_update_bucket(charge, SPEND))
    }

    #[inline(always)]
    fn refund(&self, charge: &Charge) -> Updated {
        Updated::of_number(limiter_update_bucket(charge, REFUND))
    }
}

#[inline(always)]
fn in_table() -> bool {
    globals::shape().table_lines != 0
}

/// The place of the bucket's owner in the table.
///
/// Like those below a global function of the BPF object: the verifier walks it once, for any
/// arguments, and not once for each limit and attempt.
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn limiter_place(key: *const BucketKey) -> u64 {
    // SAFETY: the verifier lets a caller pass null or a whole readable value, nothing else.
    match unsafe { key.as_ref() } {
        Some(key) => globals::shape().hash_key.place(key).0,
        None => 0,
    }
}

/// The state of the charge's bucket; 0 when there is none, which is that of a full one.
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn limiter_read_bucket(charge: *const Charge) -> u64 {
    // SAFETY: as in `limiter_place`.
    match unsafe { charge.as_ref() } {
        None => 0,
        Some(charge) if in_table() => table::read(charge),
        Some(charge) => hash::read(&charge.key),
    }
}

const SPEND: u32 = 0;
const REFUND: u32 = 1;

/// Spends or refunds the charge, returning an [`Updated`] as its number.
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn limiter_update_bucket(charge: *const Charge, kind: u32) -> u32 {
    // SAFETY: as in `limiter_place`.
    let Some(charge) = (unsafe { charge.as_ref() }) else {
        return Updated::Unavailable as u32;
    };
    if in_table() {
        limiter_common::table::update(
            || limiter_change(charge, kind),
            || limiter_insert(charge, kind),
        ) as u32
    } else {
        limiter_update_hash(charge, kind)
    }
}

/// Does so in the hash map.
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn limiter_update_hash(charge: *const Charge, kind: u32) -> u32 {
    // SAFETY: as in `limiter_place`.
    match unsafe { charge.as_ref() } {
        Some(charge) => hash::update(&charge.key, &wanted(charge, kind)) as u32,
        None => Updated::Unavailable as u32,
    }
}

/// Changes the bucket where it is in the table, returning what [`limiter_common::table::change()`]
/// does.
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn limiter_change(charge: *const Charge, kind: u32) -> u32 {
    // SAFETY: as in `limiter_place`.
    match unsafe { charge.as_ref() } {
        Some(charge) => table::change(charge, &wanted(charge, kind)),
        None => Updated::Unavailable as u32,
    }
}

/// Puts the bucket into the table, returning what [`limiter_common::table::insert`] does.
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn limiter_insert(charge: *const Charge, kind: u32) -> u32 {
    // SAFETY: as in `limiter_place`.
    match unsafe { charge.as_ref() } {
        Some(charge) => table::insert(charge, &wanted(charge, kind)),
        None => Updated::Unavailable as u32,
    }
}

#[inline(always)]
fn wanted(charge: &Charge, kind: u32) -> Change {
    if kind == REFUND {
        charge.spend.undone()
    } else {
        charge.spend
    }
}
