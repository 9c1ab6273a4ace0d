//! Measurement, in the object built with `bench`: the program draws the sources itself and passes
//! no packet to the network stack.

#[cfg(not(feature = "bench"))]
pub(crate) use self::off::{draw_source, sinks};
#[cfg(feature = "bench")]
pub(crate) use self::on::{draw_source, sinks};

#[cfg(not(feature = "bench"))]
mod off {
    use aya_ebpf::programs::XdpContext;

    #[inline(always)]
    pub(crate) fn draw_source(_context: &XdpContext) {}

    #[inline(always)]
    pub(crate) fn sinks(_context: &XdpContext) -> bool {
        false
    }
}

#[cfg(feature = "bench")]
mod on {
    use aya_ebpf::{btf_maps::PerCpuArray, macros::btf_map, programs::XdpContext};
    use bench_common::{Draw, Frame};

    #[btf_map]
    static DRAW: PerCpuArray<Draw, 1> = PerCpuArray::new();

    #[inline(always)]
    fn with_draw<R>(context: &XdpContext, then: impl FnOnce(&mut Draw, &Frame) -> R) -> Option<R> {
        let draw = DRAW.get_ptr_mut(0)?;
        // SAFETY: this CPU's own element; XDP programs do not preempt each other on a CPU.
        let draw = unsafe { &mut *draw };
        // SAFETY: the frame belongs to the program while it runs.
        let frame = unsafe { Frame::new(context.data(), context.data_end()) };
        Some(then(draw, &frame))
    }

    /// Gives the frame a drawn source.
    #[inline(always)]
    pub(crate) fn draw_source(context: &XdpContext) {
        with_draw(context, |draw, frame| {
            if let Some(source) = draw.next_source() {
                frame.set_source(source);
            }
        });
    }

    /// Whether to drop the frame even if it may pass.
    #[inline(always)]
    pub(crate) fn sinks(context: &XdpContext) -> bool {
        with_draw(context, |draw, frame| draw.sinks(frame)).unwrap_or(false)
    }
}
