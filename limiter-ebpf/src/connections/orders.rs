//! Orders of userspace about connections: it sees those that were open before, and those whose end
//! nobody told.

use aya_ebpf::{macros::xdp, programs::XdpContext};
use limiter_common::connection::{ConnectionOrder, Ends, Place};

use super::{
    are_counted, closed, limiter_count_opened, limiter_take_off, note, noted, places, queues, take,
};

/// Carries out an order of userspace on a connection or a queue, passed in place of a frame. The program is
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
    match order.order {
        ConnectionOrder::OPEN => recount(order.of, &order.ends),
        ConnectionOrder::CLOSED => closed(order.of),
        ConnectionOrder::SWEEP => queues::sweep(Place(order.of)),
        _ => return 0,
    }
    1
}

/// Counts an open connection where the policy says, and nowhere else.
#[inline(always)]
fn recount(cookie: u64, ends: &Ends) {
    if limiter_is_counted(cookie, ends) == 0 {
        // First under another name, so that it is never counted less often meanwhile. All in one
        // function would need more stack.
        limiter_count_opened(cookie | MEANWHILE, ends);
        limiter_take_off(cookie);
        limiter_rename(cookie);
    }
    queues::leave(ends);
}

/// The bit that no cookie has: the kernel counts them up.
const MEANWHILE: u64 = 1 << 63;

/// Returns 1 if a connection is counted where the policy says.
///
/// Like the next one, it is a global function of the BPF object, with a stack of its own.
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn limiter_is_counted(cookie: u64, ends: *const Ends) -> u32 {
    // SAFETY: the verifier lets a caller pass null or a whole value, nothing else.
    match (unsafe { ends.as_ref() }).filter(|_| are_counted()) {
        Some(ends) => u32::from(noted(cookie) == Some(&places(ends))),
        None => 0,
    }
}

/// Gives a connection its own name, if it is counted under the other; returns 0.
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn limiter_rename(cookie: u64) -> u32 {
    if let Some(places) = take(cookie | MEANWHILE) {
        note(cookie, &places);
    }
    0
}
