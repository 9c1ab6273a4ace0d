//! Orders of userspace about connections: it sees those that were open before, and those whose end
//! nobody told.

use aya_ebpf::{macros::xdp, programs::XdpContext};
use limiter_common::connection::{ConnectionOrder, Ends};

use super::{are_counted, closed, counts, forget, note, noted, places};

/// Carries out an order of userspace on a connection, passed in place of a frame. The program is
/// attached to nothing and run by `BPF_PROG_TEST_RUN`.
#[xdp]
#[expect(
    clippy::needless_pass_by_value,
    reason = "the macro's entry point hands the context over"
)]
fn limiter_recount(context: XdpContext) -> u32 {
    let start = context.data();
    if !are_counted() || start + size_of::<ConnectionOrder>() > context.data_end() {
        return 0;
    }
    // SAFETY: the frame has enough bytes, and any bytes are an order. They start 256 bytes after
    // the beginning of a page, and nobody writes to them.
    let order = unsafe { *(start as *const ConnectionOrder) };
    if order.is_closed == 0 {
        recount(order.cookie, &order.ends);
    } else {
        closed(order.cookie);
    }
    1
}

/// Counts an open connection where the policy says, and nowhere else. It is never counted less often
/// meanwhile.
#[inline(always)]
fn recount(cookie: u64, ends: &Ends) {
    let wanted = places(ends);
    let before = noted(cookie);
    if before == Some(wanted) {
        return;
    }
    let counted = counts::added(wanted);
    if let Some(before) = before {
        forget(cookie, &before);
    }
    note(cookie, counted);
}
