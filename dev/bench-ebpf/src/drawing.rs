//! Draws sources inside the program.

use aya_ebpf::{btf_maps::PerCpuArray, macros::btf_map, programs::XdpContext};
use bench_common::{Draw, Frame};

#[btf_map]
static DRAW: PerCpuArray<Draw, 1> = PerCpuArray::new();

/// Sets the frame's source; returns whether to drop it even if it may pass.
#[inline(always)]
pub(crate) fn draw_source(context: &XdpContext) -> bool {
    let Some(draw) = DRAW.get_ptr_mut(0) else {
        return false;
    };
    // SAFETY: this CPU's own element; XDP programs do not preempt each other on a CPU.
    let draw = unsafe { &mut *draw };
    let frame = frame(context);
    if let Some(source) = draw.next_source() {
        frame.set_source(source);
    }
    draw.sinks(&frame)
}

#[inline(always)]
pub(crate) fn frame(context: &XdpContext) -> Frame {
    // SAFETY: the program owns the frame while it runs.
    unsafe { Frame::new(context.data(), context.data_end()) }
}
