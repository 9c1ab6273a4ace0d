//! Buckets, in the store that the policy's shape says: the other one is not even verified.

pub(crate) mod atomic;
mod hash;
mod line;
mod table;
mod units;

use aya_ebpf::{btf_maps::PerCpuArray, macros::btf_map};
use limiter_common::{
    bucket::{BucketKey, BucketStore, Search, Updated},
    charge::{self, Workspace},
    decide,
    policy::Tables,
    strategy::Change,
    table::Spot,
};

use crate::{globals, tables::MapTables};

#[btf_map]
static WORKSPACE: PerCpuArray<Workspace<Found>, 1> = PerCpuArray::new();

/// This CPU's room for the charges of the packet at hand.
#[inline(always)]
pub(crate) fn workspace() -> Option<&'static mut Workspace<Found>> {
    let workspace = WORKSPACE.get_ptr_mut(0)?;
    // SAFETY: this CPU's own element, made of plain numbers; XDP programs do not preempt each
    // other on a CPU, and each asks for it once.
    Some(unsafe { &mut *workspace })
}

/// A bucket that was looked for, in the words of both stores.
#[derive(Clone, Copy, Default)]
#[repr(C)]
pub(crate) struct Found {
    /// Of the hash map only.
    key: BucketKey,
    /// Of the hash map the name only: the number of the unit.
    spot: Spot,
}

type Charge = charge::Charge<Found>;

pub(crate) struct MapBuckets;

impl BucketStore for MapBuckets {
    type Found = Found;

    #[inline(always)]
    fn find(&self, key: &BucketKey, unit: u32, search: &mut Search, found: &mut Found) -> u64 {
        if in_table() {
            return table::find(key, unit, search, &mut found.spot);
        }
        found.key = *key;
        found.spot.name = unit.into();
        if search.single == 1 {
            // A look-up costs as much as all else: the one to spend is enough.
            0
        } else {
            limiter_read_hash(found)
        }
    }

    #[inline(always)]
    fn spend(&self, charge: &Charge) -> Updated {
        if in_table() && charge.spend.is_gcra() {
            table::spend(charge)
        } else {
            update(charge, SPEND)
        }
    }

    #[inline(always)]
    fn read(&self, found: &Found) -> u64 {
        if in_table() {
            table::read(&found.spot)
        } else {
            limiter_read_hash(found)
        }
    }

    #[inline(always)]
    fn find_stamp(&self, bucket: &Found, number: u64, unit: u32, found: &mut Found) -> u64 {
        if in_table() {
            return table::find_stamp(&bucket.spot, number, unit, &mut found.spot);
        }
        found.key = bucket.key.of_stamp(number);
        found.spot.name = unit.into();
        limiter_read_hash(found)
    }

    #[inline(always)]
    fn refuse(&self, charge: &Charge) -> Updated {
        update(charge, REFUSE)
    }

    #[inline(always)]
    fn ask_window(&self, workspace: &mut Workspace<Found>, slot: u32) -> u64 {
        limiter_ask_window(workspace, slot)
    }

    #[inline(always)]
    fn spend_window(&self, workspace: &mut Workspace<Found>, slot: u32) -> Updated {
        Updated::of_number(limiter_spend_window(workspace, slot))
    }

    #[inline(always)]
    fn charge<T: Tables>(&self, _: &T, workspace: &mut Workspace<Found>) {
        limiter_charge(workspace);
    }

    #[inline(always)]
    fn observe<T: Tables>(&self, _: &T, workspace: &mut Workspace<Found>) {
        limiter_observe(workspace);
    }

    #[inline(always)]
    fn refund(&self, charge: &Charge) -> Updated {
        update(charge, REFUND)
    }
}

/// Changes the charge's bucket, however many CPUs are at it.
#[inline(always)]
fn update(charge: &Charge, kind: u32) -> Updated {
    Updated::of_number(if in_table() {
        limiter_update_table(charge, kind)
    } else {
        limiter_update_hash(charge, kind)
    })
}

/// [`BucketStore::charge`]. Returns nothing that matters: global functions have to.
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn limiter_charge(workspace: *mut Workspace<Found>) -> u32 {
    // SAFETY: the verifier lets a caller pass null or a whole value, nothing else; the workspace
    // is this CPU's, and the caller does not use it meanwhile.
    if let Some(workspace) = unsafe { workspace.as_mut() } {
        decide::charge(&MapBuckets, &MapTables, workspace);
    }
    0
}

/// [`BucketStore::observe`]; likewise.
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn limiter_observe(workspace: *mut Workspace<Found>) -> u32 {
    // SAFETY: as in `limiter_charge`.
    if let Some(workspace) = unsafe { workspace.as_mut() } {
        decide::observe(&MapBuckets, &MapTables, workspace);
    }
    0
}

/// [`BucketStore::ask_window`].
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn limiter_ask_window(workspace: *mut Workspace<Found>, slot: u32) -> u64 {
    // SAFETY: as in `limiter_charge`.
    match unsafe { workspace.as_mut() } {
        Some(workspace) => decide::ask_window(&MapBuckets, workspace, slot),
        None => 0,
    }
}

/// [`BucketStore::spend_window`], returning an [`Updated`] as its number.
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn limiter_spend_window(workspace: *mut Workspace<Found>, slot: u32) -> u32 {
    // SAFETY: as in `limiter_charge`.
    match unsafe { workspace.as_mut() } {
        Some(workspace) => decide::spend_window(&MapBuckets, workspace, slot) as u32,
        None => Updated::Unavailable as u32,
    }
}

#[inline(always)]
fn in_table() -> bool {
    globals::shape().table_lines != 0
}

const SPEND: u32 = 0;
const REFUND: u32 = 1;
const REFUSE: u32 = 2;

/// The state of a bucket in the hash map, in its unit; 0 when there is none.
///
/// Like those below a global function of the BPF object: the verifier walks it once, for any
/// arguments, and not once for each limit and attempt. In the table, a passing packet whose bucket
/// is there calls none of them, for what returning from one costs.
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn limiter_read_hash(found: *const Found) -> u64 {
    // SAFETY: the verifier lets a caller pass null or a whole readable value, nothing else.
    match unsafe { found.as_ref() } {
        Some(found) => hash::read(found),
        None => 0,
    }
}

/// Changes the charge's bucket in the hash map, returning an [`Updated`] as its number.
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn limiter_update_hash(charge: *const Charge, kind: u32) -> u32 {
    // SAFETY: as in `limiter_read_hash`.
    match unsafe { charge.as_ref() } {
        Some(charge) => limiter_common::table::update(
            || hash::change(charge, change_of(charge, kind)),
            || limiter_insert_hash(charge, kind),
            || limiter_exchange(charge, kind),
        ) as u32,
        None => Updated::Unavailable as u32,
    }
}

/// Does so in the table, however many CPUs are at it.
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn limiter_update_table(charge: *const Charge, kind: u32) -> u32 {
    limiter_common::table::update(
        || limiter_change(charge, kind),
        || limiter_insert(charge, kind),
        || limiter_exchange(charge, kind),
    ) as u32
}

/// Changes the bucket where it is in the table, returning what [`limiter_common::table::change()`]
/// does.
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn limiter_change(charge: *const Charge, kind: u32) -> u32 {
    // SAFETY: as in `limiter_read_hash`.
    match unsafe { charge.as_ref() } {
        Some(charge) => table::change(charge, change_of(charge, kind)),
        None => Updated::Unavailable as u32,
    }
}

/// Puts the bucket into the table, returning what [`limiter_common::table::insert`] does.
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn limiter_insert(charge: *const Charge, kind: u32) -> u32 {
    // SAFETY: as in `limiter_read_hash`.
    match unsafe { charge.as_ref() } {
        Some(charge) => table::insert(charge, change_of(charge, kind)),
        None => Updated::Unavailable as u32,
    }
}

/// Does so in the hash map.
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn limiter_insert_hash(charge: *const Charge, kind: u32) -> u32 {
    // SAFETY: as in `limiter_read_hash`.
    match unsafe { charge.as_ref() } {
        Some(charge) => hash::insert(charge, change_of(charge, kind)),
        None => Updated::Unavailable as u32,
    }
}

/// Has the bucket, which is there in another unit, count in that of the charge, returning what
/// [`limiter_common::table::exchange`] does.
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn limiter_exchange(charge: *const Charge, kind: u32) -> u32 {
    // SAFETY: as in `limiter_read_hash`.
    match unsafe { charge.as_ref() } {
        Some(charge) if in_table() => table::exchange(charge, change_of(charge, kind)),
        Some(charge) => hash::exchange(charge, change_of(charge, kind)),
        None => Updated::Unavailable as u32,
    }
}

#[inline(always)]
fn change_of(charge: &Charge, kind: u32) -> Change<'_> {
    match kind {
        REFUND => Change::Refund(&charge.spend),
        REFUSE => Change::Refuse(&charge.spend),
        _ => Change::Spend(&charge.spend),
    }
}
