//! The treatment of TCP connections that the host began.

use serde::{Deserialize, Serialize};

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
