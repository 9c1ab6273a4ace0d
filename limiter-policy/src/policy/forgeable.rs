//! The reason why a packet's source proves nothing: a forger can send it with another's address.
//!
//! No match proves the source address. UDP and ICMP have no handshake, and a SYN comes before it. A forger
//! may also send segments of other hosts' connections: the program does not check sequence numbers, so
//! guessing the ports is enough.

use limiter_common::packet::TcpState;

use super::{Match, TcpFlags};

/// The reason why a packet's source proves nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ForgeryReason {
    /// It counts packets that are not TCP.
    NoHandshake,
    /// It counts TCP segments that open a connection.
    Syn,
    /// It counts other TCP segments.
    Segment,
}

impl ForgeryReason {
    /// Returns the most forgeable packets that a limit with this match counts.
    #[must_use]
    pub fn of(matching: &Match) -> Self {
        if matching.protocols != [Match::TCP] && !matching.needs_tcp() {
            return Self::NoHandshake;
        }
        let counts_new =
            matching.tcp_states.is_empty() || matching.tcp_states.contains(&TcpState::New);
        let takes_syn = counts_new
            && matching.tcp_flags.is_none_or(|flags| {
                flags.clear & TcpFlags::SYN == 0 && flags.set & TcpFlags::ACK == 0
            });
        if takes_syn { Self::Syn } else { Self::Segment }
    }

    /// Returns the reason in words.
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
