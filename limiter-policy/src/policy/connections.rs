//! The treatment of TCP connections: which are limited and counted, and the clients that wait for one.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::text;

/// The treatment of TCP connections that the host began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OwnConnections {
    /// No limit and no sieve refuses them.
    #[default]
    Exempt,
    /// They are limited like all others.
    Limit,
}

impl OwnConnections {
    /// Every value.
    pub const ALL: [Self; 2] = [Self::Exempt, Self::Limit];

    /// Returns the name in configuration files and output.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Exempt => "exempt",
            Self::Limit => "limit",
        }
    }

    /// Returns whether it is the default.
    #[must_use]
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// The TCP connections that limits on open connections count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CountedConnections {
    /// Connections of the host's own sockets.
    #[default]
    Own,
    /// Forwarded connections, too, as the kernel's connection tracking sees them.
    Tracked,
}

impl CountedConnections {
    /// Every value.
    pub const ALL: [Self; 2] = [Self::Own, Self::Tracked];

    /// Returns the name in configuration files and output.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Own => "own",
            Self::Tracked => "tracked",
        }
    }

    /// Returns whether it is the default.
    #[must_use]
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// The queue of clients that wait for a limit on connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Queue {
    /// The most clients that may wait for one key's room.
    pub size: u64,
    /// The maximum waiting time, in nanoseconds; 0: none.
    pub max_age_ns: u64,
}

/// Formats the field as in a configuration file.
impl fmt::Display for Queue {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{{size: {}", self.size)?;
        if self.max_age_ns != 0 {
            write!(formatter, ", max-age: {}", text::period(self.max_age_ns))?;
        }
        formatter.write_str("}")
    }
}
