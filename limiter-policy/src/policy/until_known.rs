//! The treatment of a connection's data until its server name is known.

use serde::{Deserialize, Serialize};

/// The treatment of a connection's data until its server name is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum UntilKnown {
    /// It passes, and limits by name do not count it.
    #[default]
    Pass,
    /// It is dropped, and the client sends it again.
    Hold,
}

impl UntilKnown {
    /// Every value.
    pub const ALL: [Self; 2] = [Self::Pass, Self::Hold];

    /// Returns the name in configuration files and output.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Hold => "hold",
        }
    }

    /// Returns whether it is the default.
    #[must_use]
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }
}
