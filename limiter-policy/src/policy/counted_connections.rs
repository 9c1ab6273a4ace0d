//! The TCP connections that limits on connections count.

use serde::{Deserialize, Serialize};

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
