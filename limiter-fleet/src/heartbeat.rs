//! A node's heartbeat.

use serde::{Deserialize, Serialize};

use crate::{Name, Position};

/// The most bytes of a version.
const MOST_VERSION: usize = 32;

/// A node's heartbeat.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Heartbeat {
    /// The node.
    pub node: Name,
    /// The version of its limiter.
    pub version: Box<str>,
    /// The digest of its policy.
    pub policy: u64,
    /// When it was sent, in milliseconds since 1970, by the node's clock.
    pub ms: u64,
    /// The last message of the stream that the node has read and enforced, unless its own guard forbade it; `None`: it
    /// has not read the store yet.
    pub read: Option<Position>,
}

impl Heartbeat {
    /// Returns a version, cut to the length of a heartbeat's.
    #[must_use]
    pub fn version(version: &str) -> Box<str> {
        version[..version.floor_char_boundary(MOST_VERSION)].into()
    }

    /// Returns whether a node may have sent it.
    #[must_use]
    pub fn is_right(&self) -> bool {
        self.version.len() <= MOST_VERSION && !self.version.chars().any(char::is_control)
    }
}
