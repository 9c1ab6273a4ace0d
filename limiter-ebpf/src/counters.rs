//! Counters: a set for each CPU, so that counting needs no locked instruction.

use aya_ebpf::{btf_maps::PerCpuArray, macros::btf_map};
use limiter_common::{
    counters::{
        LIMIT_COUNTERS, LimitTraffic, REASON_COUNTERS, STANDING_COUNTERS, Traffic, standing_counter,
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

/// What sources of each standing got of limits that reserve.
#[btf_map]
static STANDING_TRAFFIC: PerCpuArray<LimitTraffic, { STANDING_COUNTERS as usize }> =
    PerCpuArray::new();

/// Counts a frame of `length` bytes under its reason, and under the limits that passed or dropped
/// it.
#[inline(always)]
pub(crate) fn count(length: u64, verdict: &Verdict, action: Action) {
    let shape = MapTables.shape();
    let index = shape.interface * REASON_COUNT + verdict.reason as u32;
    if let Some(counter) = REASON_TRAFFIC.get_ptr_mut(index) {
        // SAFETY: this CPU's own element; XDP programs do not preempt each other on a CPU.
        unsafe { (*counter).add(length) };
    }
    match action {
        Action::Pass => {
            for limit_index in 0..MAX_LIMITS {
                if limit_index >= shape.limit_count {
                    break;
                }
                let bit = 1u64 << (limit_index & 63);
                if verdict.matched & bit != 0 {
                    of_limit(limit_index, verdict, |traffic| {
                        if verdict.would_drop & bit == 0 {
                            traffic.passed.add(length);
                        } else {
                            traffic.would_drop.add(length);
                        }
                    });
                }
            }
        }
        Action::Drop => {
            if let Some(limit_index) = verdict.denied_by() {
                of_limit(limit_index, verdict, |traffic| traffic.dropped.add(length));
            }
        }
    }
}

/// Changes the counters of the limit with that index in the policy: all of a verdict, and if the
/// limit reserves, those of the source's standing.
#[inline(always)]
fn of_limit(limit_index: u32, verdict: &Verdict, change: impl Fn(&mut LimitTraffic)) {
    let Some(limit) = MapTables.limit(limit_index) else {
        return;
    };
    if let Some(counter) = LIMIT_TRAFFIC.get_ptr_mut(u32::from(limit.id)) {
        // SAFETY: this CPU's own element; XDP programs do not preempt each other on a CPU.
        change(unsafe { &mut *counter });
    }
    if let Some(standing) = verdict.counted_standing(MapTables.shape(), limit_index)
        && let Some(counter) =
            STANDING_TRAFFIC.get_ptr_mut(standing_counter(LimitId(limit.id), standing))
    {
        // SAFETY: as above.
        change(unsafe { &mut *counter });
    }
}
