//! From a refused packet to what becomes of it.

#[cfg(not(target_arch = "bpf"))]
use super::AssumedSocket;
use super::{
    Answer, Exchange,
    syn_cookie::{Cookie, Heard},
    write::Written,
};

/// Writes answers, and knows the network stack. The kernel's program makes functions of the parts.
pub trait Responder {
    /// Calls [`super::write()`].
    fn write(&self, exchange: &mut Exchange, answer: Answer) -> Written;

    /// Asks the socket that listens for the segment of the exchange.
    fn ask(&self, exchange: &Exchange) -> Heard;

    /// Calls [`super::write_syn_ack`].
    fn write_syn_ack(&self, exchange: &mut Exchange, cookie: Cookie) -> u32;
}

/// What becomes of a refused packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Response {
    /// It is dropped.
    Nothing,
    /// It is answered: the exchange has an answer of that length in bytes, from the IP header on.
    Answer(u32),
    /// It is a SYN, and passes if the answer to it might be sent: the listening socket has room.
    ListenerHasRoom,
    /// It passes: it brings a valid SYN cookie back.
    ValidSynCookie,
}

/// Answers the exchange's packet, if it may be.
#[inline(always)]
pub fn respond<R: Responder>(responder: &R, exchange: &mut Exchange, answer: Answer) -> Response {
    match responder.write(exchange, answer) {
        Written::Nothing => Response::Nothing,
        Written::Answer(length) => Response::Answer(length),
        Written::Question => match responder.ask(exchange) {
            Heard::Nothing => Response::Nothing,
            Heard::Room => Response::ListenerHasRoom,
            Heard::Valid => Response::ValidSynCookie,
            Heard::Cookie(cookie) => Response::Answer(responder.write_syn_ack(exchange, cookie)),
        },
    }
}

/// Answers where no network stack is at hand.
#[cfg(not(target_arch = "bpf"))]
#[derive(Clone, Copy, Debug, Default)]
pub struct NativeResponder {
    /// The state that the sockets are assumed to be in.
    pub socket: AssumedSocket,
    /// The time, in nanoseconds.
    pub now_ns: u64,
}

/// Returns the network stack's clock, in milliseconds, at a time of the packets' clock.
#[must_use]
#[inline(always)]
#[expect(
    clippy::cast_possible_truncation,
    reason = "timestamps of TCP are the low half"
)]
pub const fn clock_ms(now_ns: u64) -> u32 {
    (now_ns / 1_000_000) as u32
}

#[cfg(not(target_arch = "bpf"))]
impl Responder for NativeResponder {
    fn write(&self, exchange: &mut Exchange, answer: Answer) -> Written {
        super::write(exchange, answer, &super::InlineLoops)
    }

    fn ask(&self, exchange: &Exchange) -> Heard {
        super::assumed(exchange, self.socket)
    }

    fn write_syn_ack(&self, exchange: &mut Exchange, cookie: Cookie) -> u32 {
        super::write_syn_ack(exchange, cookie, clock_ms(self.now_ns), &super::InlineLoops)
    }
}
