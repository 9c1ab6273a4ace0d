//! The wire beyond the clients' interface: drops packets sent back to forged addresses, as if they
//! had left for them. A veth end needs a program to take frames that another program sends back.

use aya_ebpf::{
    bindings::xdp_action::{XDP_DROP, XDP_PASS},
    macros::xdp,
    programs::XdpContext,
};
use bench_common::is_near;

use crate::window::{ETHERNET, TYPE_IPV4, TYPE_IPV6, load};

#[xdp]
#[expect(
    clippy::needless_pass_by_value,
    reason = "the macro's entry point hands the context over"
)]
fn wire(context: XdpContext) -> u32 {
    // Enough of the destination to tell its network.
    let (start, is_v6) = match load::<u16>(&context, ETHERNET - 2) {
        Some(TYPE_IPV4) => (load::<u32>(&context, ETHERNET + 16), false),
        Some(TYPE_IPV6) => (load::<u32>(&context, ETHERNET + 24), true),
        _ => return XDP_PASS,
    };
    match start {
        Some(start) if is_near(u32::from_be(start), is_v6) => XDP_PASS,
        _ => XDP_DROP,
    }
}
