//! A node's sign of life.

use serde::{Deserialize, Serialize};

use crate::Name;

/// The most bytes of a version.
const MOST_VERSION: usize = 32;

/// A node's sign of life.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Beat {
    /// The node.
    pub node: Name,
    /// The version of its limiter.
    pub version: Box<str>,
    /// The digest of its policy.
    pub policy: u64,
    /// When it was sent, in milliseconds since 1970, by the node's clock.
    pub ms: u64,
}

impl Beat {
    /// Makes the sign of life of a node, at a time in milliseconds since 1970.
    #[must_use]
    pub fn new(node: Name, version: &str, policy: u64, ms: u64) -> Self {
        let end = version.floor_char_boundary(MOST_VERSION);
        Self {
            node,
            version: version[..end].into(),
            policy,
            ms,
        }
    }

    /// Returns whether a node may have said it.
    pub(super) fn is_right(&self) -> bool {
        self.version.len() <= MOST_VERSION && !self.version.chars().any(char::is_control)
    }
}
