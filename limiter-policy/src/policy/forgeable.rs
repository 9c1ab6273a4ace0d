//! Why a packet's source proves nothing: anyone can send it with another's address.
//!
//! No match proves that a packet comes from its source address. UDP and ICMP have no handshake, and
//! a SYN comes before it. For other segments, we cannot tell whether they belong to an established
//! connection: the program does not track connections.

use super::{Match, TcpFlags};

/// Why a packet's source proves nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Forgeable {
    /// It counts packets that are not TCP.
    NoHandshake,
    /// It counts TCP segments that open a connection.
    Syn,
    /// It counts other TCP segments.
    Segment,
}

impl Forgeable {
    /// Returns what a limit with this match counts.
    #[must_use]
    pub fn of(matching: &Match) -> Self {
        if matching.protocols != [Match::TCP] && matching.tcp_flags.is_none() {
            return Self::NoHandshake;
        }
        let takes_syn = matching
            .tcp_flags
            .is_none_or(|flags| flags.clear & TcpFlags::SYN == 0 && flags.set & TcpFlags::ACK == 0);
        if takes_syn { Self::Syn } else { Self::Segment }
    }

    /// Says it in words.
    #[must_use]
    pub const fn why(self) -> &'static str {
        match self {
            Self::NoHandshake => "it counts packets without a handshake",
            Self::Syn => "it counts SYNs, which come before the handshake",
            Self::Segment => {
                "it counts TCP segments, even of connections that were never established"
            }
        }
    }
}
