//! Which TCP connections limits on them count.

use serde::{Deserialize, Serialize};

/// Which TCP connections limits on connections open at once count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CountedConnections {
    /// Those of the host's own sockets.
    #[default]
    Own,
    /// Also those that the kernel's connection tracking knows: what the host forwards.
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
