//! Buckets, in the table that the policy's features select. The verifier removes the code of the other table.

pub(crate) mod atomic;
pub(crate) mod handshake_charge;
mod hash;
mod line;
mod location;
pub(crate) mod orders;
mod table;
mod units;

use aya_ebpf::{btf_maps::PerCpuArray, macros::btf_map};
use limiter_common::{
    bucket::{self, BucketTable, Decide, Ending, Search, Swap, Transition, UpdateOutcome},
    classified_packet::ClassifiedPacket,
    decide::{self, Charge, DecisionSteps, Intent, Plan, Scratch},
    key::BucketKey,
    limit::MAX_LIMITS,
    policy::Tables,
};

pub(crate) use self::{line::MapLine, location::BucketLocation};
use crate::{globals, tables::MapTables};

#[btf_map]
static SCRATCH: PerCpuArray<Scratch<BucketLocation>, 1> = PerCpuArray::new();

/// This CPU's scratch memory for the current packet.
#[inline(always)]
pub(crate) fn scratch() -> Option<&'static mut Scratch<BucketLocation>> {
    let scratch = SCRATCH.get_ptr_mut(0)?;
    // SAFETY: this CPU's own element, made of plain numbers; XDP programs do not preempt each
    // other on a CPU (the loader refuses kernels where they do), and each calls this once.
    Some(unsafe { &mut *scratch })
}

/// The buckets in one table, or in the one that the policy's features select. `WINDOWS`: limits may have other
/// strategies than GCRA. `INLINE`: limits with a lower index are prepared without a call, unless their rate moves. The
/// verifier walks the code once for each of them.
#[derive(Clone, Copy)]
pub(crate) struct MapBuckets<
    const WINDOWS: bool,
    const STORE: u32 = IN_ANY,
    const INLINE: u32 = MAX_LIMITS,
>;

/// The most limits that are prepared without a call: with more, the verifier walks too much code.
pub(crate) const MOST_INLINE: u32 = 32;

/// The table that the policy's features select.
pub(crate) const IN_ANY: u32 = 0;
const IN_TABLE: u32 = 1;
const IN_HASH: u32 = 2;

impl<const WINDOWS: bool, const STORE: u32, const INLINE: u32> MapBuckets<WINDOWS, STORE, INLINE> {
    #[inline(always)]
    fn in_table() -> bool {
        match STORE {
            IN_TABLE => true,
            IN_HASH => false,
            _ => in_table(),
        }
    }
}

impl<const WINDOWS: bool, const STORE: u32, const INLINE: u32> BucketTable
    for MapBuckets<WINDOWS, STORE, INLINE>
{
    type Location = BucketLocation;

    #[inline(always)]
    fn find(
        &self,
        key: &BucketKey,
        unit: u32,
        search: &mut Search,
        location: &mut BucketLocation,
    ) -> u64 {
        if Self::in_table() {
            table::find(key, unit, search, &mut location.table)
        } else {
            hash::find(key, unit, search, location)
        }
    }

    #[inline(always)]
    fn find_part(
        &self,
        bucket: &BucketLocation,
        number: u64,
        unit: u32,
        location: &mut BucketLocation,
    ) -> u64 {
        if Self::in_table() {
            table::find_part(&bucket.table, number, unit, &mut location.table)
        } else if STORE == IN_HASH {
            hash::find_part(bucket, number, unit, location)
        } else {
            hash::limiter_find_part_hash(bucket, number, unit, location)
        }
    }

    /// In the table that the features select, it reads and swaps without a call. In the loop over attempts, where the
    /// table is a constant, it calls: older verifiers compare all state that a round of a loop with calls leaves
    /// behind, and walk the loop once for each path through the round before.
    #[inline(always)]
    fn read(&self, location: &mut BucketLocation) -> u64 {
        if STORE == IN_TABLE {
            table::limiter_read(location)
        } else if Self::in_table() {
            table::read(&mut location.table)
        } else {
            hash::read(location)
        }
    }

    #[inline(always)]
    fn swap(&self, location: &BucketLocation, now_ns: u64, seen: u64, wanted: u64) -> Swap {
        // Limits prepared by calls are not on the fast path.
        if STORE == IN_TABLE || INLINE == 0 && Self::in_table() {
            Swap::of_number(table::limiter_swap(location, now_ns, seen, wanted))
        } else if Self::in_table() {
            table::swap(location, now_ns, seen, wanted)
        } else {
            hash::swap(location, now_ns, seen, wanted)
        }
    }

    #[inline(always)]
    fn update(
        &self,
        location: &mut BucketLocation,
        now_ns: u64,
        decide: &mut impl Decide<BucketLocation>,
    ) -> UpdateOutcome {
        if Self::in_table() {
            bucket::update(self, location, now_ns, decide)
        } else {
            hash::update(location, now_ns, decide)
        }
    }
}

impl<const WINDOWS: bool, const STORE: u32, const INLINE: u32> DecisionSteps
    for MapBuckets<WINDOWS, STORE, INLINE>
{
    const WINDOWS: bool = WINDOWS;

    #[inline(always)]
    fn prepare<T: Tables>(
        &self,
        tables: &T,
        scratch: &mut Scratch<BucketLocation>,
        limit_index: u32,
        is_moving: bool,
    ) -> u64 {
        if limit_index >= INLINE || is_moving {
            limiter_prepare(scratch, limit_index)
        } else {
            decide::prepare(self, tables, scratch, limit_index, false)
        }
    }

    #[inline(always)]
    fn passes_above_reserves<T: Tables>(
        &self,
        tables: &T,
        scratch: &mut Scratch<BucketLocation>,
        limits: u64,
    ) -> bool {
        // Most policies have no other reserving limit: returning from a function takes longer than this test.
        let first = tables.features().reserving.trailing_zeros();
        let others = limits & !(1 << (first & 63));
        (limits == others || decide::passes_above_reserve(tables, scratch, first))
            && (others == 0 || limiter_keep_reserves(scratch, others) == 1)
    }

    #[inline(always)]
    fn record_demand<T: Tables>(&self, _tables: &T, packet: &ClassifiedPacket, limit_index: u32) {
        limiter_record_demand(packet, limit_index);
    }

    #[inline(always)]
    fn retry(&self, charge: &mut Charge<BucketLocation>, intent: Intent) -> UpdateOutcome {
        let intent = intent as u32;
        UpdateOutcome::of_number(if Self::in_table() {
            limiter_retry(charge, intent)
        } else {
            limiter_retry_hash(charge, intent)
        })
    }

    #[inline(always)]
    fn decide_again(
        &self,
        location: &BucketLocation,
        plan: &mut Plan<BucketLocation>,
        intent: Intent,
        state: u64,
    ) -> Transition {
        let intent = intent as u32;
        let state = if Self::in_table() {
            limiter_decide_again(location, plan, intent, state)
        } else {
            limiter_decide_again_hash(location, plan, intent, state)
        };
        Transition {
            state,
            ending: Ending::of_number(plan.ending),
        }
    }
}

/// Calls [`DecisionSteps::prepare`] for limits that are not prepared inline.
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn limiter_prepare(scratch: *mut Scratch<BucketLocation>, limit_index: u32) -> u64 {
    let features = globals::features();
    // SAFETY: as in `limiter_retry`.
    let Some(scratch) = (unsafe { scratch.as_mut() }) else {
        return 0;
    };
    let is_moving = features.is_moving(limit_index);
    if features.windows != 0 {
        let buckets = &MapBuckets::<true>;
        decide::prepare(buckets, &MapTables, scratch, limit_index, is_moving)
    } else if features.limit_count > MOST_INLINE
        || features.reserving | features.automatic | features.shared != 0
        || features.answers()
    {
        let buckets = &MapBuckets::<false>;
        decide::prepare(buckets, &MapTables, scratch, limit_index, is_moving)
    } else {
        // Older verifiers walk this function even if nothing calls it.
        0
    }
}

/// Calls [`DecisionSteps::passes_above_reserves`]; returns 1 for true.
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn limiter_keep_reserves(scratch: *mut Scratch<BucketLocation>, limits: u64) -> u32 {
    // Older verifiers walk this function even if no limit reserves.
    if globals::features().reserving == 0 {
        return 0;
    }
    // SAFETY: as in `limiter_retry`.
    let Some(scratch) = (unsafe { scratch.as_mut() }) else {
        return 0;
    };
    u32::from(decide::passes_above_reserves(&MapTables, scratch, limits))
}

/// Calls [`DecisionSteps::record_demand`]; returns 0, because global functions must return a number.
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn limiter_record_demand(packet: *const ClassifiedPacket, limit_index: u32) -> u32 {
    // Older verifiers walk this function even if the policy has no shared limit.
    if globals::features().shared == 0 {
        return 0;
    }
    // SAFETY: as in `limiter_retry`; the packet is part of the scratch memory, which the caller does not change
    // meanwhile.
    if let Some(packet) = unsafe { packet.as_ref() } {
        decide::record_demand(&MapTables, packet, limit_index);
    }
    0
}

/// Calls [`DecisionSteps::retry`] in the table; takes the number of an [`Intent`] and returns the number of an
/// [`UpdateOutcome`].
///
/// Like the other functions of the tables, it is a global function of the BPF object: the verifier walks it once, for
/// any arguments, not once for each limit and attempt. In the table, a passing packet with an existing bucket calls
/// none of them, which saves the cost of returning.
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn limiter_retry(charge: *mut Charge<BucketLocation>, intent: u32) -> u32 {
    retry_in::<IN_TABLE>(charge, intent)
}

/// The same for the hash map. One function for both tables would take more stack than either.
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn limiter_retry_hash(charge: *mut Charge<BucketLocation>, intent: u32) -> u32 {
    retry_in::<IN_HASH>(charge, intent)
}

#[inline(always)]
fn retry_in<const STORE: u32>(charge: *mut Charge<BucketLocation>, intent: u32) -> u32 {
    let intent = Intent::of_number(intent);
    // SAFETY: the verifier lets a caller pass null or a whole value, nothing else; the charge is
    // this CPU's, and the caller does not use it meanwhile.
    let updated = match unsafe { charge.as_mut() } {
        // Older verifiers walk this function even if the buckets are in the other table.
        Some(charge) if in_table() == (STORE == IN_TABLE) => {
            decide::retry(&MapBuckets::<true, STORE>, charge, intent)
        }
        _ => UpdateOutcome::Unavailable,
    };
    updated as u32
}

/// Calls [`DecisionSteps::decide_again`] in the table; takes the number of an [`Intent`], returns the state, and stores
/// the number of the [`Ending`] in the plan.
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn limiter_decide_again(
    location: *const BucketLocation,
    plan: *mut Plan<BucketLocation>,
    intent: u32,
    state: u64,
) -> u64 {
    decide_again_in::<IN_TABLE>(location, plan, intent, state)
}

/// The same for the hash map.
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn limiter_decide_again_hash(
    location: *const BucketLocation,
    plan: *mut Plan<BucketLocation>,
    intent: u32,
    state: u64,
) -> u64 {
    decide_again_in::<IN_HASH>(location, plan, intent, state)
}

#[inline(always)]
fn decide_again_in<const STORE: u32>(
    location: *const BucketLocation,
    plan: *mut Plan<BucketLocation>,
    intent: u32,
    state: u64,
) -> u64 {
    let intent = Intent::of_number(intent);
    // SAFETY: as in `retry_in`; the two do not overlap.
    let (Some(location), Some(plan)) = (unsafe { (location.as_ref(), plan.as_mut()) }) else {
        return state;
    };
    if in_table() != (STORE == IN_TABLE) {
        return state;
    }
    let Transition { state, ending } = if globals::features().windows == 0 {
        let buckets = &MapBuckets::<false, STORE>;
        decide::decide_again(buckets, location, plan, intent, state)
    } else {
        let buckets = &MapBuckets::<true, STORE>;
        decide::decide_again(buckets, location, plan, intent, state)
    };
    plan.ending = ending as u32;
    state
}

#[inline(always)]
fn in_table() -> bool {
    globals::features().table_lines != 0
}
