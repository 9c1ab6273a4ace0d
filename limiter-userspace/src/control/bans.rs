//! What the command line and the daemon say to each other of bans.

use std::fmt;

use limiter_common::ban::MAX_REASON;
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// Why somebody is banned: one short line.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct BanReason(String);

/// No ban has such a reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum InvalidReason {
    /// It is too long.
    #[error("a reason has at most {MAX_REASON} bytes, and this one has {0}")]
    TooLong(usize),
    /// It would make a mess of the terminal.
    #[error("a reason is one line of text, without control characters")]
    Control,
}

impl BanReason {
    /// The reason as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for BanReason {
    type Error = InvalidReason;

    fn try_from(text: String) -> Result<Self, InvalidReason> {
        if text.chars().any(char::is_control) {
            return Err(InvalidReason::Control);
        }
        if text.len() > MAX_REASON {
            return Err(InvalidReason::TooLong(text.len()));
        }
        Ok(Self(text))
    }
}

impl From<BanReason> for String {
    fn from(reason: BanReason) -> Self {
        reason.0
    }
}

impl fmt::Display for BanReason {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}
