//! Decides the fate of a refused packet.

#[cfg(not(target_arch = "bpf"))]
use super::AssumedSocket;
use super::{
    Answer, Exchange,
    syn_cookie::{Cookie, ListenerReply},
    write::WriteOutcome,
};

/// Writes answers, and asks the network stack. The kernel's program makes these separate functions.
pub trait Responder {
    /// Calls [`super::write()`].
    fn write(&self, exchange: &mut Exchange, answer: Answer) -> WriteOutcome;

    /// Asks the listening socket of the exchange's segment.
    fn query_listener(&self, exchange: &Exchange) -> ListenerReply;

    /// Calls [`super::write_syn_ack`].
    fn write_syn_ack(&self, exchange: &mut Exchange, cookie: Cookie) -> u32;
}

/// The fate of a refused packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AnswerOutcome {
    /// The packet is dropped.
    Nothing,
    /// The packet is answered: the exchange has an answer of that length in bytes, from the IP header on.
    Answer(u32),
    /// The packet is a SYN that passes if its answer might be sent: the listening socket has room.
    ListenerHasRoom,
    /// The packet passes: it has a valid SYN cookie.
    ValidSynCookie,
}

/// Answers the exchange's packet, if allowed.
#[inline(always)]
pub fn respond<R: Responder>(
    responder: &R,
    exchange: &mut Exchange,
    answer: Answer,
) -> AnswerOutcome {
    match responder.write(exchange, answer) {
        WriteOutcome::Nothing => AnswerOutcome::Nothing,
        WriteOutcome::Answer(length) => AnswerOutcome::Answer(length),
        WriteOutcome::Question => match responder.query_listener(exchange) {
            ListenerReply::Nothing => AnswerOutcome::Nothing,
            ListenerReply::Room => AnswerOutcome::ListenerHasRoom,
            ListenerReply::Valid => AnswerOutcome::ValidSynCookie,
            ListenerReply::Cookie(cookie) => {
                AnswerOutcome::Answer(responder.write_syn_ack(exchange, cookie))
            }
        },
    }
}

/// A responder without a network stack.
#[cfg(not(target_arch = "bpf"))]
#[derive(Clone, Copy, Debug, Default)]
pub struct NativeResponder {
    /// The assumed state of the sockets.
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
    fn write(&self, exchange: &mut Exchange, answer: Answer) -> WriteOutcome {
        super::write(exchange, answer, &super::InlineLoops)
    }

    fn query_listener(&self, exchange: &Exchange) -> ListenerReply {
        super::assumed(exchange, self.socket)
    }

    fn write_syn_ack(&self, exchange: &mut Exchange, cookie: Cookie) -> u32 {
        super::write_syn_ack(exchange, cookie, clock_ms(self.now_ns), &super::InlineLoops)
    }
}
