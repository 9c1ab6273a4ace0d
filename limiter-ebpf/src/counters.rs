//! Counters: a set for each CPU, so that counting needs no locked instruction.

use aya_ebpf::{btf_maps::PerCpuArray, macros::btf_map};
use limiter_common::{
    counters::{
        LIMIT_COUNTERS, LimitTraffic, REASON_COUNTERS, STANDING_COUNTERS, Traffic,
        numbered_standing_counter,
    },
    decide::Verdict,
    limit::{LimitId, MAX_LIMITS},
    policy::Tables,
    reason::{Action, REASON_COUNT},
};

use crate::tables::MapTables;

#[btf_map]
static REASON_TRAFFIC: PerCpuArray<Traffic, { REASON_COUNTERS as usize }> = PerCpuArray::new();

#[btf_map]
static LIMIT_TRAFFIC: PerCpuArray<LimitTraffic, { LIMIT_COUNTERS as usize }> = PerCpuArray::new();

/// The effect of limits that reserve, by the standing of sources.
#[btf_map]
static STANDING_TRAFFIC: PerCpuArray<LimitTraffic, { STANDING_COUNTERS as usize }> =
    PerCpuArray::new();

/// Counts a frame under its reason on the interface with this number, and under the limits that passed or dropped it.
#[inline(always)]
pub(crate) fn count(interface: u32, carried: Traffic, verdict: &Verdict, action: Action) {
    let features = MapTables.features();
    let index = interface * REASON_COUNT + verdict.reason as u32;
    if let Some(counter) = REASON_TRAFFIC.get_ptr_mut(index) {
        // SAFETY: this CPU's own element; XDP programs do not preempt each other on a CPU.
        unsafe { *counter += carried };
    }
    match action {
        Action::Pass => {
            count_passed(carried, verdict.matched, verdict.would_drop);
            if features.reserving_anything() != 0 && verdict.standing().is_some() {
                let standing = verdict.standing_number();
                limiter_count_standing(
                    carried.packets,
                    carried.bytes,
                    verdict.matched,
                    verdict.would_drop,
                    standing,
                );
            }
        }
        Action::Drop => {
            if let Some(limit_index) = verdict.refused_by() {
                of_limit(limit_index, |traffic| traffic.dropped += carried);
                if features.reserving_anything() & 1 << (limit_index & 63) != 0 {
                    of_standing(limit_index, verdict.standing_number(), |traffic| {
                        traffic.dropped += carried;
                    });
                }
            }
        }
    }
}

/// Counts a packet that passed under the limits in `matched`.
#[inline(always)]
fn count_passed(carried: Traffic, matched: u64, would_drop: u64) {
    for limit_index in limit_indices() {
        let bit = 1u64 << (limit_index & 63);
        if matched & bit != 0 {
            of_limit(limit_index, |traffic| {
                passed(traffic, carried, would_drop & bit != 0);
            });
        }
    }
}

/// Counts a passed packet under the reserving limits in `matched`, by the number of its source's
/// standing.
///
/// It is a global function of the BPF object: the verifier walks it once, for any arguments.
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn limiter_count_standing(
    packets: u64,
    bytes: u64,
    matched: u64,
    would_drop: u64,
    standing: u32,
) -> u32 {
    // Older verifiers walk this function even if no limit reserves.
    let matched = matched & MapTables.features().reserving_anything();
    if matched == 0 {
        return 0;
    }
    let carried = Traffic { packets, bytes };
    for limit_index in limit_indices() {
        let bit = 1u64 << (limit_index & 63);
        if matched & bit != 0 {
            of_standing(limit_index, standing, |traffic| {
                passed(traffic, carried, would_drop & bit != 0);
            });
        }
    }
    0
}

/// The indices of all limits. The verifier needs a constant bound.
#[inline(always)]
fn limit_indices() -> impl Iterator<Item = u32> {
    let count = MapTables.features().limit_count;
    (0..MAX_LIMITS).take_while(move |limit_index| *limit_index < count)
}

/// Counts a passed packet. `would_drop`: it passed only because the limit merely observes.
#[inline(always)]
fn passed(traffic: &mut LimitTraffic, carried: Traffic, would_drop: bool) {
    if would_drop {
        traffic.would_drop += carried;
    } else {
        traffic.passed += carried;
    }
}

/// Changes the counters of the limit with this index in the policy.
#[inline(always)]
fn of_limit(limit_index: u32, change: impl FnOnce(&mut LimitTraffic)) {
    if let Some(limit) = MapTables.limit(limit_index)
        && let Some(counter) = LIMIT_TRAFFIC.get_ptr_mut(u32::from(limit.id))
    {
        // SAFETY: this CPU's own element; XDP programs do not preempt each other on a CPU.
        change(unsafe { &mut *counter });
    }
}

/// Changes a limit's counters for sources of the standing with this number.
#[inline(always)]
fn of_standing(limit_index: u32, standing: u32, change: impl FnOnce(&mut LimitTraffic)) {
    if let Some(limit) = MapTables.limit(limit_index)
        && let Some(index) = numbered_standing_counter(LimitId(limit.id), standing)
        && let Some(counter) = STANDING_TRAFFIC.get_ptr_mut(index)
    {
        // SAFETY: as above.
        change(unsafe { &mut *counter });
    }
}
