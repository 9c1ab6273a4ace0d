//! Writes a packet's answer, if it may be answered.

use super::{
    Answer, Exchange, Loops, addresses, exchange::ROOM, network, prohibited, reset, syn_cookie,
    truncate,
};

/// The result of writing an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteOutcome {
    /// Nothing: the packet gets no answer.
    Nothing,
    /// An answer of that length in bytes, from the IP header on.
    Answer(u32),
    /// Nothing yet: the segment is valid, so ask the listening socket.
    Question,
}

impl WriteOutcome {
    /// Stands in for a length: [`Self::Question`].
    const QUESTION: u32 = u32::MAX;

    const _NO_LENGTH: () = assert!((ROOM as u64) < Self::QUESTION as u64);

    /// The number for [`Self::of_number`].
    #[must_use]
    #[inline(always)]
    pub const fn number(self) -> u32 {
        match self {
            Self::Nothing => 0,
            Self::Answer(length) => length,
            Self::Question => Self::QUESTION,
        }
    }

    /// The inverse of [`Self::number`].
    #[must_use]
    #[inline(always)]
    pub const fn of_number(number: u32) -> Self {
        match number {
            0 => Self::Nothing,
            Self::QUESTION => Self::Question,
            length => Self::Answer(length),
        }
    }
}

/// Writes an answer over the exchange's packet, unless it gets none.
#[inline(always)]
pub fn write<L: Loops>(exchange: &mut Exchange, answer: Answer, loops: &L) -> WriteOutcome {
    exchange.erase_answer();
    if !addresses::may_be_answered(exchange) || !network::is_whole(exchange) {
        return WriteOutcome::Nothing;
    }
    let is_written = match answer {
        Answer::Drop => false,
        Answer::Truncate => truncate::write(exchange, loops),
        Answer::Reset => reset::write(exchange, loops),
        Answer::Prohibited => prohibited::write(exchange, loops),
        Answer::SynCookie => {
            return if syn_cookie::is_syn_or_ack(exchange, loops) {
                WriteOutcome::Question
            } else {
                WriteOutcome::Nothing
            };
        }
    };
    if is_written {
        WriteOutcome::Answer(exchange.answer_length())
    } else {
        WriteOutcome::Nothing
    }
}
