//! The network stack's state of a TCP segment's connection.

use super::Facts;
use crate::numbered::numbered;

numbered! {
    /// The state of a TCP segment's connection in this host's network stack.
    #[cfg_attr(
        feature = "serde",
        derive(serde::Serialize, serde::Deserialize),
        serde(rename_all = "kebab-case")
    )]
    #[derive(PartialOrd, Ord)]
    pub enum TcpState {
        /// The connection was established. It may be closing.
        Established,
        /// The segment begins a connection, or belongs to an unfinished handshake.
        New,
        /// There is neither a connection nor a handshake.
        None,
        /// There is no connection yet, but the segment makes one with a valid SYN cookie.
        Cookie,
        /// There is no connection, and it is unknown whether the segment has a valid SYN cookie.
        Unclear,
    } else None
}

impl TcpState {
    /// The number of states.
    pub const COUNT: usize = 5;

    /// Every state, in the order of their numbers.
    pub const ALL: [Self; Self::COUNT] = [
        Self::Established,
        Self::New,
        Self::None,
        Self::Cookie,
        Self::Unclear,
    ];

    /// The states that a policy names. A cookie counts as a new connection; an unclear segment
    /// counts as every state that it may be.
    pub const NAMED: [Self; 3] = [Self::Established, Self::New, Self::None];

    /// The name in configuration files and output.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::New => "new",
            Self::Established => "established",
            Self::None => "none",
            Self::Cookie => "cookie",
            Self::Unclear => "unclear",
        }
    }

    /// Whether a limit that counts the state `counted` counts this one.
    #[must_use]
    pub const fn is_counted_by(self, counted: Self) -> bool {
        match self {
            Self::Established | Self::New | Self::None => self as u32 == counted as u32,
            Self::Cookie => matches!(counted, Self::Cookie | Self::New),
            Self::Unclear => !matches!(counted, Self::Established),
        }
    }

    /// Returns the state for a segment with these facts: `other`, unless it begins a connection.
    #[must_use]
    #[inline(always)]
    pub const fn assumed(facts: &Facts, other: Self) -> Self {
        if facts.is_first_segment() {
            Self::New
        } else {
            other
        }
    }
}
