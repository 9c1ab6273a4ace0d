//! The counters of the benchmark's own programs: the least that a program can count.

use aya_ebpf::{
    bindings::xdp_action::{self, XDP_DROP, XDP_PASS},
    btf_maps::PerCpuArray,
    macros::btf_map,
};

const PASSED: u32 = 0;
const DROPPED: u32 = 1;

#[btf_map]
static COUNTED: PerCpuArray<u64, 2> = PerCpuArray::new();

#[inline(always)]
pub(crate) fn drop_it() -> xdp_action::Type {
    count(DROPPED);
    XDP_DROP
}

/// Counts a frame, and passes it unless `sink` is set.
#[inline(always)]
pub(crate) fn pass_it(sink: bool) -> xdp_action::Type {
    count(PASSED);
    if sink { XDP_DROP } else { XDP_PASS }
}

#[inline(always)]
fn count(index: u32) {
    if let Some(counter) = COUNTED.get_ptr_mut(index) {
        // SAFETY: this CPU's own element; XDP programs do not preempt each other on a CPU.
        unsafe { *counter += 1 };
    }
}
