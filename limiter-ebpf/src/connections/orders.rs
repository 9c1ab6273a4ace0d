//! Orders from userspace about connections. Userspace finds connections that were open before the program, and closed
//! ones that no event reported.

use aya_ebpf::{macros::xdp, programs::XdpContext};
use limiter_common::connection::{ConnectionOrder, CountId};

use super::{are_counted, closed, handshakes, queues, recount};

/// Carries out an order of userspace on a connection or a queue, passed in place of a frame. The program is
/// attached to nothing and run by `BPF_PROG_TEST_RUN`.
#[xdp]
#[expect(
    clippy::needless_pass_by_value,
    reason = "the macro's entry point hands the context over"
)]
fn limiter_recount(context: XdpContext) -> u32 {
    let start = context.data();
    if start + size_of::<ConnectionOrder>() > context.data_end() {
        return 0;
    }
    // SAFETY: the frame has enough bytes, and any bytes are an order. They start 256 bytes after the beginning of a
    // page, and no code writes to them.
    let order = unsafe { &*(start as *const ConnectionOrder) };
    // Functions take no pointers into a frame, so the ends are copied. The rest of the order is not: the stack is
    // small.
    let ends = order.ends;
    match order.order {
        ConnectionOrder::COMPLETED if handshakes::are_limited() => {
            handshakes::charge(&ends, order.now_ns);
        }
        _ if !are_counted() => return 0,
        ConnectionOrder::OPEN => recount(order.of, &ends),
        ConnectionOrder::CLOSED => closed(order.of),
        ConnectionOrder::SWEEP => queues::sweep(CountId(order.of)),
        _ => return 0,
    }
    1
}
