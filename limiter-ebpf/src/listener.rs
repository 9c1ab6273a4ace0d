//! The network stack's opinion of a segment: for a SYN, whether its listening socket wants a SYN
//! cookie, and which connection options the socket keeps; for later segments, whether the socket
//! accepts their cookie.

use core::ffi::c_void;

use aya_ebpf::{
    bindings::{BPF_F_RDONLY_PROG, bpf_sock},
    btf_maps::Array,
    helpers::{
        bpf_sk_release, bpf_skc_lookup_tcp, bpf_skc_to_tcp_sock, bpf_tcp_check_syncookie,
        bpf_tcp_gen_syncookie,
    },
    macros::btf_map,
    programs::XdpContext,
};
use limiter_common::{
    answer::{self, Cookie, Exchange, Listener, ListenerReply, Parts, RmemMax, ServerOptions},
    clock::Clock as _,
};

use crate::{clock::KernelClock, globals, socket::read, trial};

/// An [`RmemMax`], which only the daemon writes. All instances share it.
#[btf_map]
static RMEM_MAX: Array<u64, 1, { BPF_F_RDONLY_PROG as usize }> = Array::new();

/// The context's own network namespace, in place of another one's number.
const OF_THIS_NAMESPACE: u64 = u64::MAX;

/// `-ENOENT`: the socket has room for the SYN.
const HAS_ROOM: i64 = -2;

/// Asks the listening socket of the exchange's segment.
#[inline(always)]
pub(crate) fn query(context: &XdpContext, exchange: &Exchange) -> ListenerReply {
    if trial::is_on() {
        return answer::assumed(exchange, trial::socket());
    }
    let Parts { ip, tuple, tcp } = answer::parts(exchange);
    let bytes = exchange.bytes();
    let at = |start: usize| bytes[start..].as_ptr().cast_mut().cast::<c_void>();
    // SAFETY: the context is the program's own; the tuple has the length that goes with its family,
    // and lies in the exchange. The helper only reads it.
    let socket = unsafe {
        bpf_skc_lookup_tcp(
            context.ctx.cast(),
            at(tuple.start).cast(),
            tuple.length,
            OF_THIS_NAMESPACE,
            0,
        )
    };
    if socket.is_null() {
        return ListenerReply::Nothing;
    }
    let socket = socket.cast::<c_void>();
    let reply = if answer::is_syn(exchange) {
        // SAFETY: the socket was looked up; both headers lie in the exchange, and the helper only
        // reads them. It refuses a socket that does not listen.
        let cookie = unsafe {
            bpf_tcp_gen_syncookie(
                socket,
                at(ip.start),
                ip.length,
                at(tcp.start).cast(),
                tcp.length,
            )
        };
        match cookie {
            HAS_ROOM => ListenerReply::Room,
            error if error < 0 && is_listening(socket) => ListenerReply::Nothing,
            // Only the stack knows whether this connection still exists.
            error if error < 0 => ListenerReply::Room,
            cookie => ListenerReply::Cookie(of_helper(cookie, kept(socket))),
        }
    } else {
        // SAFETY: as above.
        let error = unsafe {
            bpf_tcp_check_syncookie(
                socket,
                at(ip.start),
                ip.length,
                at(tcp.start).cast(),
                tcp.length,
            )
        };
        if error == 0 {
            ListenerReply::Valid
        } else {
            ListenerReply::Nothing
        }
    };
    // SAFETY: the socket was looked up, and no code uses it afterwards.
    unsafe { bpf_sk_release(socket) };
    reply
}

/// Whether a looked-up socket listens. If not, it belongs to a connection.
#[inline(always)]
fn is_listening(socket: *mut c_void) -> bool {
    const LISTEN: u32 = 10;
    // SAFETY: the socket was looked up, and is not released yet; the kernel translates the read of
    // the field to its real position.
    unsafe { (*socket.cast::<bpf_sock>()).state == LISTEN }
}

/// Splits the helper's result: the sequence number in the low 32 bits, and above it the largest
/// segment.
#[inline(always)]
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the two parts of the number"
)]
const fn of_helper(cookie: i64, kept: ServerOptions) -> Cookie {
    Cookie {
        number: cookie as u32,
        mss: (cookie >> 32) as u16,
        kept,
    }
}

/// The connection options that a looked-up listening socket keeps.
#[inline(always)]
fn kept(socket: *mut c_void) -> ServerOptions {
    let fields = globals::socket_fields();
    if fields.are_known == 0 {
        return ServerOptions::NOTHING;
    }
    // SAFETY: the socket was looked up, and is not released yet. The helper returns the same
    // socket, or null if it is not a TCP socket.
    let socket = unsafe { bpf_skc_to_tcp_sock(socket) }.cast_const();
    if socket.is_null() {
        return ServerOptions::NOTHING;
    }
    let socket = socket.cast::<u8>();
    // SAFETY: the loader has found the fields in the running kernel's own type description, with
    // these sizes. The verifier checks each read against that description, and the kernel makes
    // such a read return 0 where no memory is mapped. Other CPUs change the fields at any time, as
    // whole numbers.
    let listener = unsafe {
        let namespace: *const u8 = read(socket, fields.namespace);
        let user_locks: u8 = read(socket, fields.user_locks);
        Listener {
            tcp_timestamps: read(namespace, fields.tcp_timestamps),
            tcp_sack: read(namespace, fields.tcp_sack),
            tcp_window_scaling: read(namespace, fields.tcp_window_scaling),
            tcp_rmem_max: read(namespace, fields.tcp_rmem_max),
            log2_of_rmem_max: rmem_max().log2(KernelClock.now()),
            receive_buffer: read(socket, fields.receive_buffer),
            is_buffer_set: u32::from(user_locks) & fields.buffer_lock != 0,
            window_clamp: read(socket, fields.window_clamp),
        }
    };
    listener.kept()
}

#[inline(always)]
fn rmem_max() -> RmemMax {
    match RMEM_MAX.get_ptr(0) {
        // SAFETY: the map's element, an aligned word. Volatile, because userspace writes it
        // meanwhile.
        Some(word) => RmemMax(unsafe { word.read_volatile() }),
        // Never happens: the map has this element.
        None => RmemMax::UNKNOWN,
    }
}
