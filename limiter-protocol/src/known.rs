//! Requests and responses about known sources.

use std::collections::BTreeMap;

use ipnet::IpNet;
use serde::{Deserialize, Serialize};

use super::{ShortageStatus, StandingExplanation};

/// The most sources in a prefix that can be trusted.
pub const MAX_SOURCES: u64 = 65_536;

/// The most sources in a response.
pub const MAX_SHOWN: usize = 100_000;

/// Sources to trust or to untrust, in this order.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct KnownChanges {
    /// At most [`MAX_CHANGES`](super::MAX_CHANGES).
    pub changes: Vec<KnownChange>,
    /// Whether an operator named all of them, as opposed to a stream: the daemon then logs the changes.
    pub together: bool,
}

/// A change to the known sources of a prefix.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum KnownChange {
    /// Trust them.
    Trust {
        /// The address or the prefix.
        prefix: IpNet,
        /// How long, in nanoseconds.
        for_ns: u64,
    },
    /// Trust them no more.
    Untrust(IpNet),
}

impl KnownChange {
    /// Returns the affected prefix.
    #[must_use]
    pub const fn prefix(&self) -> IpNet {
        match self {
            Self::Trust { prefix, .. } | Self::Untrust(prefix) => *prefix,
        }
    }
}

/// The outcomes of changes.
#[derive(Debug, Serialize, Deserialize)]
pub struct KnownResults {
    /// One for each change, in order.
    pub outcomes: Vec<KnownOutcome>,
    /// Whether sources proven by this request are forgotten with the daemon, because it has neither pins nor a
    /// state file.
    pub ends_with_daemon: bool,
}

/// The outcome of a change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "kebab-case")]
pub enum KnownOutcome {
    /// The prefix's sources are proven.
    Trusted {
        /// How many.
        sources: u64,
        /// How many sources found no room.
        without_room: u64,
        /// The source that the prefix is a part of; `None`: the prefix consists of sources.
        part_of: Option<IpNet>,
    },
    /// The prefix's sources are forgotten.
    Untrusted {
        /// How many were known.
        sources: u64,
        /// The source that the prefix is a part of; `None`: the prefix consists of sources.
        part_of: Option<IpNet>,
        /// The list that keeps it proven.
        proven_by: Option<String>,
    },
    /// The change was refused.
    Refused {
        /// The reason for the refusal, and how to resolve it.
        reason: String,
    },
}

/// A summary of all known sources.
#[derive(Debug, Serialize, Deserialize)]
pub struct KnownList {
    /// How many sources may be known at once, as configured.
    pub capacity: u32,
    /// The number of known sources by standing. Unknown sources came, but on too few occasions.
    pub standings: BTreeMap<String, u64>,
    /// How many of them an operator trusts.
    pub trusted: u64,
    /// The present shortage; `None`: there is none.
    pub shortage: Option<ShortageStatus>,
    /// Why handshakes prove no source, though the policy says so; `None`: they work as configured.
    pub handshakes_error: Option<String>,
    /// The sources that gained their standing last, newest first.
    pub newest: Vec<StandingExplanation>,
}

/// Selects known sources.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct KnownQuery {
    /// How many of the newest to return, at most [`MAX_SHOWN`].
    pub limit: usize,
}
