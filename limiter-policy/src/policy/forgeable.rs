//! Why the source of a packet proves nothing: anybody can send it under somebody else's address.
//!
//! No match proves that a packet is from where it says. UDP and ICMP have no handshake, a SYN comes
//! before it, and of any other segment nothing tells whether it belongs to a connection that has
//! been established: the program keeps no connections.

use super::{Match, TcpFlags};

/// Why the source of a packet proves nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Forgeable {
    /// It counts other packets than TCP's.
    NoHandshake,
    /// Of TCP, it counts segments that open a connection.
    Syn,
    /// Of TCP, it counts others.
    Segment,
}

impl Forgeable {
    /// What a limit with that match counts.
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

    /// The same in words.
    #[must_use]
    pub const fn why(self) -> &'static str {
        match self {
            Self::NoHandshake => "it counts packets without a handshake",
            Self::Syn => "it counts SYNs, which come before the handshake",
            Self::Segment => {
                "it counts TCP segments, also those of connections that were never established"
            }
        }
    }
}
