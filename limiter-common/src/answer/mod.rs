//! Answers that are sent back in place of refused packets.
//!
//! ```text
//! refused frame ─▶ exchange ─▶ may it be answered? ─▶ truncate, reset or prohibited ─▶ its answer
//! ```
//!
//! An answer spares an honest sender a time-out. It must not help a forger against the victim that receives
//! it: so an answer to DNS is never longer than its query, any other at most [`MORE_BYTES`] longer than its
//! packet. A packet that could start a loop, or has any doubtful field, gets no answer.

mod addresses;
mod checksum;
mod data_offset;
mod dns;
mod dns_cookie;
mod exchange;
mod listener;
mod loops;
mod network;
mod offer;
mod own;
mod prohibited;
mod reset;
mod respond;
mod syn_cookie;
mod transport;
mod truncate;
mod write;

pub use self::{
    dns_cookie::{SHORTEST_WITH_COOKIE, find_cookie},
    exchange::{Exchange, ROOM},
    listener::{Listener, RmemMax, ServerOptions, SocketFields},
    loops::{Loops, cookie_option, name_length, sum},
    offer::{Offer, offer},
    own::{MAX_OWN_ADDRESSES, OwnAddress, OwnAddresses, may_be_own},
    respond::{AnswerOutcome, Responder, clock_ms, respond},
    syn_cookie::{
        AssumedSocket, Cookie, ListenerReply, Part, Parts, assumed, is_plain_segment, is_syn,
        parts, write_syn_ack,
    },
    write::{WriteOutcome, write},
};
#[cfg(not(target_arch = "bpf"))]
pub use self::{loops::InlineLoops, respond::NativeResponder};
use crate::numbered::numbered;

numbered! {
    /// A limit's answer to the sender of a refused packet. Maps of the kernel contain the numbers.
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
        /// To a SYN: a SYN-ACK with a cookie, once the listening socket has no room for more. An ACK with a
        /// valid cookie passes.
        SynCookie,
    } else Drop
}

impl Answer {
    /// The number of answers.
    pub const COUNT: usize = 5;

    /// Every answer, in the order of its number.
    pub const ALL: [Self; Self::COUNT] = [
        Self::Drop,
        Self::Truncate,
        Self::Reset,
        Self::Prohibited,
        Self::SynCookie,
    ];

    /// The answer's name in configuration files, metrics and output.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Drop => "drop",
            Self::Truncate => "truncate",
            Self::Reset => "reset",
            Self::Prohibited => "prohibited",
            Self::SynCookie => "syn-cookie",
        }
    }
}

/// The most bytes by which an answer may be longer on the wire than its packet; an answer to DNS may not be
/// longer.
pub const MORE_BYTES: u32 = 16;

/// The shortest frame on the wire, without its checksum.
pub const SHORTEST_FRAME: u32 = 60;

#[cfg(test)]
mod tests;
