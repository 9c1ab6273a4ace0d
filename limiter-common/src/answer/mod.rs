//! Answers: what is sent back in place of a refused packet.
//!
//! ```text
//! refused frame ─▶ exchange ─▶ may it be answered? ─▶ truncate, reset or prohibited ─▶ its answer
//! ```
//!
//! An answer tells an honest sender at once what silence would tell it after a time-out. It must
//! not help a forger, who has it sent to somebody else: so an answer to DNS is never longer than
//! what it answers, any other at most [`MORE_BYTES`] longer. Whatever could start a loop, or is not
//! certainly what it seems, gets none.

mod addresses;
mod checksum;
mod exchange;
mod network;
mod own;
mod prohibited;
mod reset;
mod transport;
mod truncate;

#[cfg(not(target_arch = "bpf"))]
pub use self::checksum::InlineSum;
pub use self::{
    checksum::{Sum, sum},
    exchange::{Exchange, ROOM},
    own::{MAX_OWN_ADDRESSES, OwnAddress, OwnAddresses, may_be_own},
};
use crate::numbered::numbered;

numbered! {
    /// What a limit sends back to the sender of a packet that it refuses. Maps of the kernel
    /// contain the numbers.
    #[cfg_attr(
        feature = "serde",
        derive(serde::Serialize, serde::Deserialize),
        serde(rename_all = "kebab-case")
    )]
    pub enum Answer {
        /// Nothing.
        Drop,
        /// To a DNS query over UDP: "ask again over TCP".
        Truncate,
        /// To a TCP segment: a reset.
        Reset,
        /// An ICMP or ICMPv6 error: "administratively prohibited".
        Prohibited,
    } else Drop
}

impl Answer {
    /// The number of answers.
    pub const COUNT: usize = 4;

    /// Every answer, in the order of its number.
    pub const ALL: [Self; Self::COUNT] =
        [Self::Drop, Self::Truncate, Self::Reset, Self::Prohibited];

    /// Returns the answer's name in configuration files, metrics and output.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Drop => "drop",
            Self::Truncate => "truncate",
            Self::Reset => "reset",
            Self::Prohibited => "prohibited",
        }
    }
}

/// How much longer on the wire an answer may be than what it answers; one to DNS may not be longer.
pub const MORE_BYTES: u32 = 16;

/// The shortest frame on the wire, without its checksum.
pub const SHORTEST_FRAME: u32 = 60;

/// Writes an answer over the exchange's packet; returns its length in bytes from the IP header on,
/// 0: the packet gets none. `sums` adds up words of the exchange.
#[inline(always)]
pub fn write<S: Sum>(exchange: &mut Exchange, answer: Answer, sums: &S) -> u32 {
    exchange.erase_answer();
    if !addresses::may_be_answered(exchange) || !network::is_whole(exchange) {
        return 0;
    }
    let written = match answer {
        Answer::Drop => false,
        Answer::Truncate => truncate::write(exchange, sums),
        Answer::Reset => reset::write(exchange, sums),
        Answer::Prohibited => prohibited::write(exchange, sums),
    };
    if written { exchange.answer_length() } else { 0 }
}

#[cfg(test)]
mod tests;
