//! Measuring, in the object that is built with `bench`: sources drawn inside the program, and
//! nothing handed to the network stack.

use aya_ebpf::programs::XdpContext;

#[cfg(not(feature = "bench"))]
#[inline(always)]
pub(crate) fn draw_source(_context: &XdpContext) -> bool {
    false
}

/// Gives the frame a source; returns whether it is to be dropped even if it may pass.
#[cfg(feature = "bench")]
#[inline(always)]
pub(crate) fn draw_source(context: &XdpContext) -> bool {
    use aya_ebpf::{btf_maps::PerCpuArray, macros::btf_map};
    use bench_common::{Draw, Frame};

    #[btf_map]
    static DRAW: PerCpuArray<Draw, 1> = PerCpuArray::new();

    let Some(draw) = DRAW.get_ptr_mut(0) else {
        return false;
    };
    // SAFETY: this CPU's own element; XDP programs do not preempt each other on a CPU.
    let draw = unsafe { &mut *draw };
    // SAFETY: the frame is the program's while it runs.
    let frame = unsafe { Frame::new(context.data(), context.data_end()) };
    if let Some(source) = draw.next_source() {
        frame.set_source(source);
    }
    draw.sinks(&frame)
}
