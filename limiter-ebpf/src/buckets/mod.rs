//! Buckets, in the store that the policy's shape says: the other one is not even verified.

pub(crate) mod atomic;
mod hash;
mod line;
pub(crate) mod orders;
mod table;
mod units;

use aya_ebpf::{btf_maps::PerCpuArray, macros::btf_map};
use limiter_common::{
    bucket::{BucketStore, Search, Updated},
    charge::{self, Workspace},
    decide::{self, WindowChange},
    owner::BucketKey,
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
    // other on a CPU (the loader refuses kernels where they do), and each asks for it once.
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

/// Of policies in which all limits are of GCRA, as most are, and of those in which they are not:
/// what is not there takes no stack.
#[derive(Clone, Copy)]
pub(crate) struct MapBuckets<const WINDOWS: bool>;

impl<const WINDOWS: bool> BucketStore for MapBuckets<WINDOWS> {
    type Found = Found;

    const WINDOWS: bool = WINDOWS;

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
        if in_table() && (!WINDOWS || charge.spend.is_gcra()) {
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
    fn decide_window(
        &self,
        workspace: &mut Workspace<Found>,
        slot: u32,
        wanted: WindowChange,
    ) -> u64 {
        limiter_decide_window(workspace, slot, wanted as u32)
    }

    #[inline(always)]
    fn change_window(
        &self,
        workspace: &mut Workspace<Found>,
        slot: u32,
        wanted: WindowChange,
    ) -> Updated {
        Updated::of_number(limiter_change_window(workspace, slot, wanted as u32))
    }

    #[inline(always)]
    fn prepare<T: Tables>(&self, tables: &T, workspace: &mut Workspace<Found>, slot: u32) -> u64 {
        if WINDOWS {
            limiter_prepare(workspace, slot)
        } else {
            decide::prepare(self, tables, workspace, slot)
        }
    }

    #[inline(always)]
    fn refund(&self, charge: &Charge) -> Updated {
        update(charge, REFUND)
    }
}

/// Changes the charge's bucket, however many CPUs are at it.
#[inline(always)]
fn update(charge: &Charge, kind: u32) -> Updated {
    Updated::of_number(limiter_update(charge, kind))
}

/// [`BucketStore::prepare`].
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn limiter_prepare(workspace: *mut Workspace<Found>, slot: u32) -> u64 {
    // SAFETY: the verifier lets a caller pass null or a whole value, nothing else; the workspace
    // is this CPU's, and the caller does not use it meanwhile.
    match unsafe { workspace.as_mut() } {
        Some(workspace) => decide::prepare(&MapBuckets::<true>, &MapTables, workspace, slot),
        None => 0,
    }
}

/// [`BucketStore::decide_window`], of a [`WindowChange`] as its number.
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn limiter_decide_window(
    workspace: *mut Workspace<Found>,
    slot: u32,
    wanted: u32,
) -> u64 {
    let wanted = WindowChange::of_number(wanted);
    // SAFETY: as in `limiter_prepare`.
    match unsafe { workspace.as_mut() } {
        Some(workspace) => decide::decide_window(&MapBuckets::<true>, workspace, slot, wanted),
        None => 0,
    }
}

/// [`BucketStore::change_window`], likewise, returning an [`Updated`] as its number.
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn limiter_change_window(
    workspace: *mut Workspace<Found>,
    slot: u32,
    wanted: u32,
) -> u32 {
    let wanted = WindowChange::of_number(wanted);
    // SAFETY: as in `limiter_prepare`.
    let updated = match unsafe { workspace.as_mut() } {
        Some(workspace) if has_windows() => {
            decide::change_window(&MapBuckets::<true>, workspace, slot, wanted)
        }
        _ => Updated::Unavailable,
    };
    updated as u32
}

/// Whether there are limits of other strategies than GCRA.
#[inline(always)]
fn has_windows() -> bool {
    globals::shape().windows != 0
}

#[inline(always)]
fn in_table() -> bool {
    globals::shape().table_lines != 0
}

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

/// Changes the charge's bucket, however many CPUs are at it, returning an [`Updated`] as its
/// number.
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn limiter_update(charge: *const Charge, kind: u32) -> u32 {
    let updated = if in_table() {
        limiter_common::table::update(
            || limiter_change(charge, kind),
            || limiter_insert(charge, kind),
            || limiter_exchange(charge, kind),
        )
    } else {
        limiter_common::table::update(
            || limiter_change_hash(charge, kind),
            || limiter_insert_hash(charge, kind),
            || limiter_exchange_hash(charge, kind),
        )
    };
    updated as u32
}

/// Makes a step of an update a function of its own, by which it takes stack for itself only.
macro_rules! step {
    ($(#[$documentation:meta])* $name:ident, $step:path) => {
        $(#[$documentation])*
        #[unsafe(no_mangle)]
        #[inline(never)]
        extern "C" fn $name(charge: *const Charge, kind: u32) -> u32 {
            // SAFETY: as in `limiter_read_hash`.
            match unsafe { charge.as_ref() } {
                Some(charge) => $step(charge, change_of(charge, kind)),
                None => Updated::Unavailable as u32,
            }
        }
    };
}

step! {
    /// Changes the bucket where it is in the table, as [`limiter_common::table::change()`] does.
    limiter_change, table::change
}

step! {
    /// Puts the bucket into the table, as [`limiter_common::table::insert`] does.
    limiter_insert, table::insert
}

step! {
    /// Has the bucket, which is there in another unit, count in that of the charge, as
    /// [`limiter_common::table::exchange`] does.
    limiter_exchange, table::exchange
}

step! {
    /// Changes the bucket where it is in the hash map.
    limiter_change_hash, hash::change
}

step! {
    /// Puts the bucket into the hash map.
    limiter_insert_hash, hash::insert
}

step! {
    /// Has the bucket, which is there in another unit, count in that of the charge.
    limiter_exchange_hash, hash::exchange
}

const SPEND: u32 = 0;
const REFUND: u32 = 1;

#[inline(always)]
fn change_of(charge: &Charge, kind: u32) -> Change<'_> {
    if kind == REFUND {
        Change::Refund(&charge.spend)
    } else {
        Change::Spend(&charge.spend)
    }
}
