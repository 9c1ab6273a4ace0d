//! The network stack's socket for a segment or a datagram.

use core::ffi::c_void;

use aya_ebpf::{
    bindings::{bpf_sock, bpf_sock_tuple},
    helpers::{bpf_sk_lookup_udp, bpf_sk_release, bpf_skc_lookup_tcp},
    programs::XdpContext,
};
use limiter_common::{
    address::Family,
    packet::{Facts, TcpState},
};

/// The context's own network namespace, in place of another one's number.
const OF_THIS_NAMESPACE: u64 = u64::MAX;

/// The state of a socket, as in linux/tcp_states.h; 0: no socket.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct State(u32);

impl State {
    const NO_SOCKET: Self = Self(0);
    const SYN_SENT: Self = Self(2);
    const SYN_RECV: Self = Self(3);
    const CLOSE: Self = Self(7);
    const LISTEN: Self = Self(10);
    const NEW_SYN_RECV: Self = Self(12);

    /// Whether a segment, not the first of its connection, finds a socket that it may turn into a connection: one in a
    /// handshake that the segment ends, or a listening one that may accept its SYN cookie.
    #[inline(always)]
    pub(crate) fn may_open(self) -> bool {
        matches!(self, Self::SYN_RECV | Self::LISTEN | Self::NEW_SYN_RECV)
    }

    /// Whether a handshake has begun that the segment, or one received with it, may end.
    #[inline(always)]
    pub(crate) fn is_of_handshake(self) -> bool {
        matches!(self, Self::SYN_RECV | Self::NEW_SYN_RECV)
    }

    /// The state of the segment's connection. `by_cookie` decides by the segment's SYN cookie, and is called only if a
    /// socket listens.
    #[inline(always)]
    pub(crate) fn of_connection(self, by_cookie: impl FnOnce() -> TcpState) -> TcpState {
        match self {
            Self::NO_SOCKET | Self::CLOSE => TcpState::None,
            Self::LISTEN => by_cookie(),
            Self::SYN_SENT | Self::SYN_RECV | Self::NEW_SYN_RECV => TcpState::New,
            _ => TcpState::Established,
        }
    }
}

/// The addresses and ports in the helper's format: the first 12 bytes for IPv4, all for IPv6.
#[repr(C)]
struct Tuple([u32; 9]);

const LENGTH_V4: u32 = 12;
const LENGTH_V6: u32 = 36;

/// The addresses and ports of a packet with these facts, and their length.
#[inline(always)]
fn tuple(facts: &Facts) -> (Tuple, u32) {
    let ports =
        u32::from(facts.source_port.to_be()) | u32::from(facts.destination_port.to_be()) << 16;
    let (source, destination_high) = (&facts.source, facts.destination_high);
    match source.family {
        Family::V4 => {
            let [peer, own] = [first(source.high), first(destination_high)];
            (Tuple([peer, own, ports, 0, 0, 0, 0, 0, 0]), LENGTH_V4)
        }
        Family::V6 => {
            let [p0, p1, p2, p3] = words(source.high, source.low);
            let [o0, o1, o2, o3] = words(destination_high, facts.destination_low);
            (Tuple([p0, p1, p2, p3, o0, o1, o2, o3, ports]), LENGTH_V6)
        }
    }
}

/// Whether a socket takes a datagram with these facts.
#[inline(always)]
pub(crate) fn takes_datagram(context: &XdpContext, facts: &Facts) -> bool {
    let (tuple, length) = tuple(facts);
    let tuple = (&raw const tuple).cast_mut().cast::<bpf_sock_tuple>();
    // SAFETY: as below.
    let socket =
        unsafe { bpf_sk_lookup_udp(context.ctx.cast(), tuple, length, OF_THIS_NAMESPACE, 0) };
    if socket.is_null() {
        return false;
    }
    // SAFETY: the socket was looked up, and no code uses it afterwards.
    unsafe { bpf_sk_release(socket.cast()) };
    true
}

/// The state of the socket that a segment with these facts finds.
#[inline(always)]
pub(crate) fn state(context: &XdpContext, facts: &Facts) -> State {
    let (tuple, length) = tuple(facts);
    let tuple = (&raw const tuple).cast_mut().cast::<bpf_sock_tuple>();
    // SAFETY: the context is the program's own; the tuple has the length that goes with its family. The helper only
    // reads it.
    let socket =
        unsafe { bpf_skc_lookup_tcp(context.ctx.cast(), tuple, length, OF_THIS_NAMESPACE, 0) };
    if socket.is_null() {
        return State::NO_SOCKET;
    }
    let socket = socket.cast::<c_void>();
    // SAFETY: the socket was looked up, and is not released yet; the kernel translates the read of the field to its
    // real position.
    let state = unsafe { (*socket.cast::<bpf_sock>()).state };
    // SAFETY: the socket was looked up, and no code uses it afterwards.
    unsafe { bpf_sk_release(socket) };
    State(state)
}

/// Reads a field of a structure of the kernel.
///
/// # Safety
///
/// The structure must have a field of type `T` at that offset.
#[inline(always)]
pub(crate) unsafe fn read<T>(structure: *const u8, offset: u32) -> T {
    // SAFETY: the caller's promise.
    unsafe { structure.add(offset as usize).cast::<T>().read_volatile() }
}

/// The first four bytes in network byte order.
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
