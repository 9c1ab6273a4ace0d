//! Handshakes: a source that completed one with this host is proven, since no forged packet can. The same events track
//! open connections, connections that this host opened, and connections with server names, and charge handshakes to
//! limits.
//!
//! The program is on the root cgroup, where the kernel runs it at the events of every TCP connection. Measurements show
//! which event to use:
//!
//! * For an incoming connection, the kernel calls when the connection is made, and then sets the state to established.
//!   With TCP Fast Open the SYN alone makes the connection, and the handshake may never end. So the first call only
//!   subscribes to changes of the state.
//! * Before the first segment of an outgoing connection leaves, the kernel calls, too: its ports are known then.
//! * For an outgoing connection, the state is already established at the kernel's next call. The peer has answered
//!   then, with the number of the SYN, which a forger cannot know.
//! * A connection is closed in the state of that name. Half-closed ones are not; one in `TIME_WAIT` is, because its
//!   socket is gone.

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

/// The cookie of the network namespace to guard; 0: no namespace.
#[unsafe(no_mangle)]
static NETWORK_NAMESPACE: Global<u64> = Global::new(0);

/// `AF_INET` and `AF_INET6`, from linux/socket.h.
const AF_INET: u32 = 2;
const AF_INET6: u32 = 10;

/// Proves the source of a completed handshake, charges the handshake to limits, counts open connections, and tracks the
/// host's own ones.
#[sock_ops]
#[expect(
    clippy::needless_pass_by_value,
    reason = "the macro's entry point hands the context over"
)]
fn limiter_handshakes(context: SockOpsContext) -> u32 {
    match context.op() {
        BPF_SOCK_OPS_PASSIVE_ESTABLISHED_CB if is_guarded(&context) => {
            request_states(&context);
            if server_names::are_needed()
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
        BPF_SOCK_OPS_TCP_CONNECT_CB if own_connections::are_recorded() && is_guarded(&context) => {
            request_states(&context);
            if let Some(ends) = ends(&context) {
                own_connections::begun(cookie(&context), &ends);
            }
        }
        BPF_SOCK_OPS_ACTIVE_ESTABLISHED_CB if is_guarded(&context) => {
            if connections::are_counted() {
                request_states(&context);
            }
            established(&context);
        }
        _ => {}
    }
    // Lets the results of other programs stand.
    1
}

/// The index of the new state among the arguments of the state's callback.
const NEW_STATE: usize = 1;

/// Whether the connection belongs to the namespace of the limited interfaces.
#[inline(always)]
fn is_guarded(context: &SockOpsContext) -> bool {
    // SAFETY: the context is the program's own.
    let cookie = unsafe { bpf_get_netns_cookie(context.as_ptr()) };
    cookie == NETWORK_NAMESPACE.load()
}

/// Subscribes to the connection's further changes of state, keeping other programs' subscriptions.
#[inline(always)]
fn request_states(context: &SockOpsContext) {
    let flags = context.cb_flags() | BPF_SOCK_OPS_STATE_CB_FLAG;
    // Every kernel that has the cookie knows the flag.
    let _ = context.set_cb_flags(flags.cast_signed());
}

/// Handles the end of a connection.
#[inline(always)]
fn closed(context: &SockOpsContext) {
    if connections::are_counted() {
        connections::closed(cookie(context));
    }
    if (own_connections::are_recorded() || server_names::are_needed())
        && let Some(ends) = ends(context)
    {
        if own_connections::are_recorded() {
            own_connections::ended(cookie(context), &ends);
        }
        if server_names::are_needed() {
            server_names::ended(cookie(context), &ends);
        }
    }
}

/// Handles a complete handshake, unless this host made it with itself.
#[inline(always)]
fn established(context: &SockOpsContext) {
    let Some(ends) = ends(context) else {
        return;
    };
    if ends.are_both_own() {
        return;
    }
    // Otherwise a user of this host could prove all addresses local to it, even addresses local by a route alone.
    if globals::features().standing.handshakes_prove != 0 && !leads_back(context) {
        super::prove(&ends.peer());
    }
    if connections::are_counted() {
        connections::opened(cookie(context), &ends);
    }
    if handshakes::are_limited() {
        handshakes::charge(&ends, KernelClock.now());
    }
}

/// Whether the route to the peer leads back to this host: to a loopback device, as for each of its own addresses. False
/// if the loader has not found the kernel's fields.
#[inline(always)]
fn leads_back(context: &SockOpsContext) -> bool {
    /// `IFF_LOOPBACK`, from linux/if.h.
    const LOOPBACK: u32 = 0x8;
    let fields = globals::route_fields();
    if fields.are_known == 0 {
        return false;
    }
    // SAFETY: the context is the program's own, and the kernel translates the read of the pointer to its real position.
    let socket = unsafe { (*context.ops).__bindgen_anon_2.sk };
    if socket.is_null() {
        return false;
    }
    // SAFETY: it is the context's socket. The helper returns the same socket, or null if it is not a TCP socket.
    let socket = unsafe { bpf_skc_to_tcp_sock(socket.cast()) }
        .cast_const()
        .cast::<u8>();
    if socket.is_null() {
        return false;
    }
    // SAFETY: the loader has found the fields in the running kernel's own type description. The verifier checks each
    // read against it, and the kernel makes such a read return 0 where no memory is mapped.
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

/// The cookie of the connection's socket, unique to it.
#[inline(always)]
fn cookie(context: &SockOpsContext) -> u64 {
    // SAFETY: the context is the program's own.
    unsafe { bpf_get_socket_cookie(context.as_ptr()) }
}

/// The number of the first byte that the peer sends, for a connection without received data so far.
#[inline(always)]
const fn first_byte(context: &SockOpsContext) -> u32 {
    // SAFETY: the context is the program's own, and the kernel translates the read of the field to its real position.
    unsafe { (*context.ops).rcv_nxt }
}

#[inline(always)]
#[expect(clippy::cast_possible_truncation, reason = "ports have 16 bits")]
fn ends(context: &SockOpsContext) -> Option<Ends> {
    let [peer, own] = match context.family() {
        AF_INET => [context.remote_ip4(), context.local_ip4()].map(of_ipv4),
        AF_INET6 => of_ipv6(context).map(unmapped),
        _ => return None,
    };
    // The kernel gives the peer's port in network byte order, in the word's upper half.
    let peer_port = u32::from_be(context.remote_port()) as u16;
    Some(Ends::new(
        &peer,
        peer_port,
        &own,
        context.local_port() as u16,
    ))
}

/// Makes an address from a word in network byte order.
#[inline(always)]
const fn of_ipv4(word: u32) -> Address {
    Address::v4(word.to_ne_bytes())
}

/// The addresses of the peer and of this host.
#[inline(always)]
fn of_ipv6(context: &SockOpsContext) -> [Address; 2] {
    // SAFETY: the context is the program's own. Volatile, because the verifier allows only reads of four bytes, and the
    // compiler would join them.
    let word = |word: *const u32| unsafe { u32::from_be(word.read_volatile()) };
    let half = |high, low| u64::from(high) << 32 | u64::from(low);
    let ops = context.ops;
    // SAFETY: only addresses of existing fields are computed.
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

/// Converts an IPv4 address in IPv6 form, as sockets of both families write it, back to IPv4.
#[inline(always)]
const fn unmapped(address: Address) -> Address {
    if address.is_v4_mapped() {
        Address::v4(((address.low & 0xffff_ffff) as u32).to_be_bytes())
    } else {
        address
    }
}
