//! What the network stack says of a segment: whether its listening socket wants a SYN cookie made,
//! or knows it as its own.

use core::ffi::c_void;

use aya_ebpf::{
    helpers::{bpf_sk_release, bpf_skc_lookup_tcp, bpf_tcp_check_syncookie, bpf_tcp_gen_syncookie},
    programs::XdpContext,
};
use limiter_common::answer::{self, Cookie, Exchange, Heard, Parts};

use crate::trial;

/// The context's network namespace, in place of another's number.
const OF_THIS_NAMESPACE: u64 = u64::MAX;

/// `-ENOENT`: the socket has room for the SYN.
const HAS_ROOM: i64 = -2;

/// Asks the listening socket of the exchange's segment.
#[inline(always)]
pub(crate) fn ask(context: &XdpContext, exchange: &Exchange) -> Heard {
    if trial::is_on() {
        return answer::assumed(exchange);
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
        return Heard::Nothing;
    }
    let socket = socket.cast::<c_void>();
    let heard = if answer::is_syn(exchange) {
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
            HAS_ROOM => Heard::Room,
            error if error < 0 => Heard::Nothing,
            cookie => Heard::Cookie(of_helper(cookie)),
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
            Heard::Valid
        } else {
            Heard::Nothing
        }
    };
    // SAFETY: the socket was looked up, and nothing uses it after.
    unsafe { bpf_sk_release(socket) };
    heard
}

/// The helper returns the sequence number in the low 32 bits, above it the largest segment.
#[inline(always)]
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the two parts of the number"
)]
const fn of_helper(cookie: i64) -> Cookie {
    Cookie {
        number: cookie as u32,
        mss: (cookie >> 32) as u16,
    }
}
