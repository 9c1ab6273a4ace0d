//! A node's heartbeat.

use serde::{Deserialize, Serialize};

use crate::Name;

/// The most bytes of a version.
const MOST_VERSION: usize = 32;

/// The position of a message in the store's stream: the store's time in milliseconds since 1970, and a
/// sequence number within that millisecond. No node's clock matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct StreamPlace {
    /// The time.
    pub ms: u64,
    /// The number.
    pub number: u64,
}

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
    /// The last message that the node has read and enforced, unless its own guard forbade it; `None`: it
    /// has not read the store yet, or its version does not report it.
    pub read: Option<StreamPlace>,
    /// A digest of the fleet's configured nodes; `None`: the node names none, or its version does not
    /// report it.
    pub nodes: Option<u64>,
}

/// A heartbeat of versions that did not report the last message read.
#[derive(Deserialize)]
pub(super) struct EarlierHeartbeat {
    node: Name,
    version: Box<str>,
    policy: u64,
    ms: u64,
}

impl From<EarlierHeartbeat> for Heartbeat {
    fn from(heartbeat: EarlierHeartbeat) -> Self {
        let EarlierHeartbeat {
            node,
            version,
            policy,
            ms,
        } = heartbeat;
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

impl Heartbeat {
    /// Makes a node's heartbeat. `ms` is in milliseconds since 1970.
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

    /// Adds the digest of the configured nodes.
    #[must_use]
    pub fn with_nodes(self, nodes: Option<u64>) -> Self {
        Self { nodes, ..self }
    }

    /// Adds the last message that the node has read.
    #[must_use]
    pub fn with_read(self, read: Option<StreamPlace>) -> Self {
        Self { read, ..self }
    }

    /// Returns whether a node may have sent it.
    pub(super) fn is_right(&self) -> bool {
        self.version.len() <= MOST_VERSION && !self.version.chars().any(char::is_control)
    }
}
