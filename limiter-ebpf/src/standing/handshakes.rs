//! Handshakes: a source that completed one with this host is proven, since no forged packet can. The
//! same events say which connections are open, which of them this host began, which have server names, and
//! which handshakes are charged to limits.
//!
//! The program is on the root cgroup, where the kernel runs it at the events of every TCP
//! connection. Which event counts was measured:
//!
//! * For a connection that came in, the kernel calls when the connection is made, and then sets the
//!   state to established. With TCP Fast Open it is made by the SYN alone, and whether the
//!   handshake ever ends is open. So the first call only asks to be told of states.
//! * Before the first segment of a connection that this host makes leaves, the kernel calls, too: its
//!   ports are known then.
//! * For a connection that this host made, the state is already established when the kernel first
//!   calls. The peer has answered then, with the number of the SYN, which a forger cannot know.
//! * A connection is closed in the state of that name. Half-closed ones are not; one in `TIME_WAIT`
//!   is, whose socket is gone.

use aya_ebpf::{
    EbpfContext as _, Global,
    bindings::{
        BPF_SOCK_OPS_ACTIVE_ESTABLISHED_CB, BPF_SOCK_OPS_PASSIVE_ESTABLISHED_CB,
        BPF_SOCK_OPS_STATE_CB, BPF_SOCK_OPS_STATE_CB_FLAG, BPF_SOCK_OPS_TCP_CONNECT_CB,
        BPF_TCP_CLOSE, BPF_TCP_ESTABLISHED,
    },
    helpers::{bpf_get_netns_cookie, bpf_get_socket_cookie, bpf_skc_to_tcp_sock},
    macros::sock_ops,
    programs::SockOpsContext,
};
use limiter_common::{address::Address, clock::Clock as _, connection::Ends};

use crate::{
    clock::KernelClock,
    connections::{self, handshakes},
    globals, own_connections, server_names,
    socket::read,
};

/// The cookie of the network namespace whose connections count; 0: none's do.
#[unsafe(no_mangle)]
static NETWORK_NAMESPACE: Global<u64> = Global::new(0);

/// `AF_INET` and `AF_INET6`, from linux/socket.h.
const AF_INET: u32 = 2;
const AF_INET6: u32 = 10;

/// Notes sources that complete a handshake, charges it, counts open connections, and notes those that the
/// host began.
#[sock_ops]
#[expect(
    clippy::needless_pass_by_value,
    reason = "the macro's entry point hands the context over"
)]
fn limiter_handshakes(context: SockOpsContext) -> u32 {
    match context.op() {
        BPF_SOCK_OPS_PASSIVE_ESTABLISHED_CB if is_guarded(&context) => {
            ask_for_states(&context);
            if server_names::are_asked_for()
                && let Some(ends) = ends(&context)
            {
                server_names::begun(cookie(&context), &ends, first_byte(&context));
            }
        }
        BPF_SOCK_OPS_STATE_CB
            if context.arg(NEW_STATE) == BPF_TCP_ESTABLISHED && is_guarded(&context) =>
        {
            established(&context);
        }
        BPF_SOCK_OPS_STATE_CB
            if context.arg(NEW_STATE) == BPF_TCP_CLOSE && is_guarded(&context) =>
        {
            closed(&context);
        }
        BPF_SOCK_OPS_TCP_CONNECT_CB if own_connections::are_noted() && is_guarded(&context) => {
            ask_for_states(&context);
            if let Some(ends) = ends(&context) {
                own_connections::begun(cookie(&context), &ends);
            }
        }
        BPF_SOCK_OPS_ACTIVE_ESTABLISHED_CB if is_guarded(&context) => {
            if connections::are_counted() {
                ask_for_states(&context);
            }
            established(&context);
        }
        _ => {}
    }
    // Allows what other programs may have answered.
    1
}

/// The argument of the state's callback that is the new state.
const NEW_STATE: usize = 1;

/// Returns whether the connection belongs to the namespace of the limited interfaces.
#[inline(always)]
fn is_guarded(context: &SockOpsContext) -> bool {
    // SAFETY: the context is the program's own.
    let cookie = unsafe { bpf_get_netns_cookie(context.as_ptr()) };
    cookie == NETWORK_NAMESPACE.load()
}

/// Asks the kernel to call for the connection's next states, besides what other programs have asked
/// for.
#[inline(always)]
fn ask_for_states(context: &SockOpsContext) {
    let flags = context.cb_flags() | BPF_SOCK_OPS_STATE_CB_FLAG;
    // Every kernel that has the cookie knows the flag.
    let _ = context.set_cb_flags(flags.cast_signed());
}

/// Notes that a connection is closed.
#[inline(always)]
fn closed(context: &SockOpsContext) {
    if connections::are_counted() {
        connections::closed(cookie(context));
    }
    if (own_connections::are_noted() || server_names::are_asked_for())
        && let Some(ends) = ends(context)
    {
        if own_connections::are_noted() {
            own_connections::ended(cookie(context), &ends);
        }
        if server_names::are_asked_for() {
            server_names::ended(cookie(context), &ends);
        }
    }
}

/// Notes that a handshake is complete, unless it is one of this host with itself.
#[inline(always)]
fn established(context: &SockOpsContext) {
    let Some(ends) = ends(context) else {
        return;
    };
    if ends.are_both_own() {
        return;
    }
    // Otherwise a user of this host could prove all addresses that are its own, also by a route alone.
    if globals::shape().standing.handshakes_prove != 0 && !leads_back(context) {
        super::prove(&ends.peer());
    }
    if connections::are_counted() {
        connections::opened(cookie(context), &ends);
    }
    if handshakes::are_limited() {
        handshakes::charge(&ends, KernelClock.now());
    }
}

/// Returns whether the route to the peer leads back to this host: to a loopback device, as to each of its own
/// addresses. It does not if the loader has not found where the kernel keeps that.
#[inline(always)]
fn leads_back(context: &SockOpsContext) -> bool {
    /// `IFF_LOOPBACK`, from linux/if.h.
    const LOOPBACK: u32 = 0x8;
    let fields = globals::route_fields();
    if fields.are_known == 0 {
        return false;
    }
    // SAFETY: the context is the program's own, and the kernel has the pointer read where it is.
    let socket = unsafe { (*context.ops).__bindgen_anon_2.sk };
    if socket.is_null() {
        return false;
    }
    // SAFETY: it is the context's socket. The result is the same, or null if it is none of TCP.
    let socket = unsafe { bpf_skc_to_tcp_sock(socket.cast()) }
        .cast_const()
        .cast::<u8>();
    if socket.is_null() {
        return false;
    }
    // SAFETY: the loader has found the fields in the running kernel's own description. The verifier checks
    // each against it, and the kernel has such a read give 0 where nothing is mapped.
    unsafe {
        let route: *const u8 = read(socket, fields.route);
        if route.is_null() {
            return false;
        }
        let device: *const u8 = read(route, fields.device);
        if device.is_null() {
            return false;
        }
        let flags: u32 = read(device, fields.flags);
        flags & LOOPBACK != 0
    }
}

/// Returns the cookie of the connection's socket, which no other socket gets.
#[inline(always)]
fn cookie(context: &SockOpsContext) -> u64 {
    // SAFETY: the context is the program's own.
    unsafe { bpf_get_socket_cookie(context.as_ptr()) }
}

/// Returns the number of the first byte that the peer sends, of a connection from which nothing was
/// received yet.
#[inline(always)]
const fn first_byte(context: &SockOpsContext) -> u32 {
    // SAFETY: the context is the program's own, and the kernel has the field read where it is.
    unsafe { (*context.ops).rcv_nxt }
}

/// Returns the ends of the connection.
#[inline(always)]
#[expect(clippy::cast_possible_truncation, reason = "ports have 16 bits")]
fn ends(context: &SockOpsContext) -> Option<Ends> {
    let [peer, own] = match context.family() {
        AF_INET => [context.remote_ip4(), context.local_ip4()].map(of_ipv4),
        AF_INET6 => of_ipv6(context).map(unmapped),
        _ => return None,
    };
    // The kernel gives the peer's in network byte order, in the word's upper half.
    let peer_port = u32::from_be(context.remote_port()) as u16;
    Some(Ends::new(
        &peer,
        peer_port,
        &own,
        context.local_port() as u16,
    ))
}

/// Makes an address of a word in network byte order.
#[inline(always)]
const fn of_ipv4(word: u32) -> Address {
    Address::v4(word.to_ne_bytes())
}

/// Returns the addresses of the peer and of this host.
#[inline(always)]
fn of_ipv6(context: &SockOpsContext) -> [Address; 2] {
    // SAFETY: the context is the program's own. Volatile, because the verifier allows only reads of
    // four bytes, and the compiler would join them.
    let word = |word: *const u32| unsafe { u32::from_be(word.read_volatile()) };
    let half = |high, low| u64::from(high) << 32 | u64::from(low);
    let ops = context.ops;
    // SAFETY: only addresses of fields are computed, which the context has.
    let (remote, local) = unsafe { (&raw const (*ops).remote_ip6, &raw const (*ops).local_ip6) };
    [remote, local].map(|words| {
        let words: *const u32 = words.cast();
        // SAFETY: there are four words.
        let [first, second, third, fourth] =
            [0, 1, 2, 3].map(|index| word(unsafe { words.add(index) }));
        Address {
            high: half(first, second),
            low: half(third, fourth),
            ..Address::v6([0; 8], [0; 8])
        }
    })
}

/// Returns the IPv4 address that a socket of both families writes as an IPv6 one.
#[inline(always)]
const fn unmapped(address: Address) -> Address {
    if address.is_v4_mapped() {
        Address::v4(((address.low & 0xffff_ffff) as u32).to_be_bytes())
    } else {
        address
    }
}
