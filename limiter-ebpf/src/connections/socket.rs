//! What the network stack says of a segment: whether it would open a connection.

use core::ffi::c_void;

use aya_ebpf::{
    bindings::{bpf_sock, bpf_sock_tuple},
    helpers::{bpf_sk_release, bpf_skc_lookup_tcp},
    programs::XdpContext,
};
use limiter_common::{address::Family, packet::Facts};

/// The context's network namespace, in place of another's number.
const OF_THIS_NAMESPACE: u64 = u64::MAX;

/// The states of sockets without a connection yet, from linux/tcp_states.h.
const TCP_SYN_RECV: u32 = 3;
const TCP_LISTEN: u32 = 10;
const TCP_NEW_SYN_RECV: u32 = 12;

/// The addresses and ports as the helper wants them: the first 12 bytes for IPv4, or all.
#[repr(C)]
struct Tuple([u32; 9]);

const LENGTH_V4: u32 = 12;
const LENGTH_V6: u32 = 36;

/// Returns whether a segment with these facts, which is not the first, finds no connection, but a
/// socket that may make one of it: one whose handshake it ends, or one that listens and may know the
/// segment's SYN cookie.
#[inline(always)]
pub(super) fn is_opening(context: &XdpContext, facts: &Facts) -> bool {
    let ports =
        u32::from(facts.source_port.to_be()) | u32::from(facts.destination_port.to_be()) << 16;
    let (source, destination_high) = (&facts.source, facts.destination_high);
    let (tuple, length) = match source.family {
        Family::V4 => {
            let [peer, own] = [first(source.high), first(destination_high)];
            (Tuple([peer, own, ports, 0, 0, 0, 0, 0, 0]), LENGTH_V4)
        }
        Family::V6 => {
            let [p0, p1, p2, p3] = words(source.high, source.low);
            let [o0, o1, o2, o3] = words(destination_high, facts.destination_low);
            (Tuple([p0, p1, p2, p3, o0, o1, o2, o3, ports]), LENGTH_V6)
        }
    };
    let tuple = (&raw const tuple).cast_mut().cast::<bpf_sock_tuple>();
    // SAFETY: the context is the program's own; the tuple has the length that goes with its family.
    // The helper only reads it.
    let socket =
        unsafe { bpf_skc_lookup_tcp(context.ctx.cast(), tuple, length, OF_THIS_NAMESPACE, 0) };
    if socket.is_null() {
        return false;
    }
    let socket = socket.cast::<c_void>();
    // SAFETY: the socket was looked up, and is not released yet; the kernel has the field read where
    // it is.
    let state = unsafe { (*socket.cast::<bpf_sock>()).state };
    // SAFETY: the socket was looked up, and nothing uses it after.
    unsafe { bpf_sk_release(socket) };
    matches!(state, TCP_SYN_RECV | TCP_LISTEN | TCP_NEW_SYN_RECV)
}

/// Returns the first four bytes in network byte order.
#[inline(always)]
const fn first(half: u64) -> u32 {
    ((half >> 32) as u32).to_be()
}

#[inline(always)]
#[expect(clippy::cast_possible_truncation, reason = "the lower half")]
const fn words(high: u64, low: u64) -> [u32; 4] {
    [
        first(high),
        (high as u32).to_be(),
        first(low),
        (low as u32).to_be(),
    ]
}
