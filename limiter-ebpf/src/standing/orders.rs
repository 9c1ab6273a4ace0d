//! Orders of userspace on the records of sources, like the orders on buckets.

use aya_ebpf::{macros::xdp, programs::XdpContext};
use limiter_common::{
    sources,
    standing::{Event, EventOrder, SourceId, Standing},
};

use super::MapStanding;
use crate::globals;

/// Carries out an order of userspace on a source, passed in place of a frame; returns the number of
/// the source's new standing. The program is attached to no hook and run by `BPF_PROG_TEST_RUN`.
#[xdp]
#[expect(
    clippy::needless_pass_by_value,
    reason = "the macro's entry point hands the context over"
)]
fn limiter_change_source(context: XdpContext) -> u32 {
    let start = context.data();
    if start + size_of::<EventOrder>() > context.data_end() {
        return Standing::Unknown as u32;
    }
    // SAFETY: the frame has enough bytes, and any bytes are an order. They start 256 bytes after
    // the beginning of a page, and no code writes to them.
    let order = unsafe { *(start as *const EventOrder) };
    let event = Event::of_numbers(order.event, order.value);
    let (features, source) = (globals::features(), SourceId(order.source));
    sources::happened(&MapStanding, features, source, event, order.now_ns) as u32
}
