//! A node's sign of life.

use serde::{Deserialize, Serialize};

use crate::Name;

/// The most bytes of a version.
const MOST_VERSION: usize = 32;

/// The place of a message in the store's stream: its time by the store's clock, in milliseconds since 1970, and a
/// number among those of that time. No node's clock has a part in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct StreamPlace {
    /// The time.
    pub ms: u64,
    /// The number.
    pub number: u64,
}

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
    /// The last message that the node has read, and put in force unless it is against it; `None`: it has not read
    /// the store yet, or its version does not say so.
    pub read: Option<StreamPlace>,
    /// A digest of the fleet's nodes, as it names them; `None`: it names none, or its version does not say so.
    pub nodes: Option<u64>,
}

/// A sign of life as versions wrote it that did not say what they have read.
#[derive(Deserialize)]
pub(super) struct EarlierBeat {
    node: Name,
    version: Box<str>,
    policy: u64,
    ms: u64,
}

impl From<EarlierBeat> for Beat {
    fn from(beat: EarlierBeat) -> Self {
        let EarlierBeat {
            node,
            version,
            policy,
            ms,
        } = beat;
        Self {
            node,
            version,
            policy,
            ms,
            read: None,
            nodes: None,
        }
    }
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
            read: None,
            nodes: None,
        }
    }

    /// Has it say whom the node names.
    #[must_use]
    pub fn with_nodes(self, nodes: Option<u64>) -> Self {
        Self { nodes, ..self }
    }

    /// Has it say which message the node has read last.
    #[must_use]
    pub fn with_read(self, read: Option<StreamPlace>) -> Self {
        Self { read, ..self }
    }

    /// Returns whether a node may have said it.
    pub(super) fn is_right(&self) -> bool {
        self.version.len() <= MOST_VERSION && !self.version.chars().any(char::is_control)
    }
}
