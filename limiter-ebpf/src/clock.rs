//! The time: the kernel's monotonic clock, or one that a test run sets.

use aya_ebpf::{
    bindings::BPF_F_RDONLY_PROG, btf_maps::Array, helpers::bpf_ktime_get_ns, macros::btf_map,
};
use limiter_common::decide::Clock;

use crate::globals;

/// The time of a test run, in nanoseconds.
#[btf_map]
static TEST_CLOCK: Array<u64, 1, { BPF_F_RDONLY_PROG as usize }> = Array::new();

pub(crate) struct KernelClock;

impl Clock for KernelClock {
    #[inline(always)]
    fn now(&self) -> u64 {
        // A constant to the verifier: a live program keeps no trace of the branch.
        if globals::TEST_CLOCK_ENABLED.load() == 0 {
            // SAFETY: the helper takes no argument and may be called anywhere.
            unsafe { bpf_ktime_get_ns() }
        } else {
            TEST_CLOCK.get(0).copied().unwrap_or(0)
        }
    }
}
