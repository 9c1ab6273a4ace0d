//! The ideal: passes the packets of a fixed list of sources, and drops all others. No limiter can
//! know better who is good, or find out faster.

use aya_ebpf::{
    bindings::xdp_action::{XDP_DROP, XDP_PASS},
    btf_maps::HashMap,
    macros::{btf_map, xdp},
    programs::XdpContext,
};

use crate::window::{ETHERNET, TYPE_IPV4, TYPE_IPV6, load};

/// The good: IPv4 addresses, or the upper halves of IPv6 addresses, as in the packet. No address of
/// one kind is one of the other, since an IPv4 address leaves the last four bytes 0 and no /64 of a
/// client does. The loader sets the capacity.
#[btf_map]
static GOOD: HashMap<[u32; 2], u32, 1> = HashMap::new();

#[xdp]
#[expect(
    clippy::needless_pass_by_value,
    reason = "the macro's entry point hands the context over"
)]
fn ideal(context: XdpContext) -> u32 {
    let source = match load::<u16>(&context, ETHERNET - 2) {
        Some(TYPE_IPV4) => load::<u32>(&context, ETHERNET + 12).map(|address| [address, 0]),
        Some(TYPE_IPV6) => load::<[u32; 2]>(&context, ETHERNET + 8),
        _ => return XDP_PASS,
    };
    let Some(source) = source else {
        return XDP_DROP;
    };
    // SAFETY: no code changes the list while the program is attached.
    if unsafe { GOOD.get(source) }.is_some() {
        XDP_PASS
    } else {
        XDP_DROP
    }
}
