//! Why a node does not believe a message.

use std::fmt;

/// Why a message or one of its updates is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refusal {
    name: &'static str,
    why: &'static str,
}

impl Refusal {
    pub(crate) const fn new(name: &'static str, why: &'static str) -> Self {
        Self { name, why }
    }

    /// Its name in metrics.
    #[must_use]
    pub const fn name(self) -> &'static str {
        self.name
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.why)
    }
}

impl std::error::Error for Refusal {}
