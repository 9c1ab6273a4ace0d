//! The kernel's monotonic clock.

use aya_ebpf::helpers::bpf_ktime_get_ns;
use limiter_common::clock::Clock;

use crate::trial;

pub(crate) struct KernelClock;

impl Clock for KernelClock {
    #[inline(always)]
    fn now(&self) -> u64 {
        match trial::now() {
            Some(now) => now,
            // SAFETY: the helper takes no argument and may be called anywhere.
            None => unsafe { bpf_ktime_get_ns() },
        }
    }
}
