//! Requests and answers about known sources.

use std::collections::BTreeMap;

use ipnet::IpNet;
use serde::{Deserialize, Serialize};

use super::{ShortageStatus, StandingExplanation};

/// The most sources that a prefix may have to be vouched for.
pub const MAX_SOURCES: u64 = 65_536;

/// The most sources in an answer.
pub const MAX_SHOWN: usize = 100_000;

/// Sources to vouch for or to forget, in this order.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct KnownChanges {
    /// At most [`MAX_CHANGES`](super::MAX_CHANGES).
    pub changes: Vec<KnownChange>,
    /// Whether an operator named all of them, as opposed to a stream: then the changes are logged.
    pub together: bool,
}

/// A change of what is known of the sources of a prefix.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum KnownChange {
    /// Vouch for them.
    Know {
        /// The address or the prefix.
        prefix: IpNet,
        /// How long, in nanoseconds.
        for_ns: u64,
    },
    /// Forget them.
    Forget(IpNet),
}

impl KnownChange {
    /// Returns the prefix that it concerns.
    #[must_use]
    pub const fn prefix(&self) -> IpNet {
        match self {
            Self::Know { prefix, .. } | Self::Forget(prefix) => *prefix,
        }
    }
}

/// The outcomes of changes.
#[derive(Debug, Serialize, Deserialize)]
pub struct KnownChanged {
    /// One for each change, in order.
    pub outcomes: Vec<KnownOutcome>,
    /// Whether some of the sources are proven now, but no longer than the daemon runs, because it
    /// has neither pins nor a state file.
    pub ends_with_daemon: bool,
}

/// The outcome of a change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "kebab-case")]
pub enum KnownOutcome {
    /// Its sources are proven.
    Known {
        /// How many.
        sources: u64,
        /// How many more there is no room for.
        without_room: u64,
        /// The source that the prefix is a part of; `None`: the prefix consists of sources.
        part_of: Option<IpNet>,
    },
    /// Its sources are forgotten.
    Forgotten {
        /// How many were known.
        sources: u64,
        /// The source that the prefix is a part of; `None`: the prefix consists of sources.
        part_of: Option<IpNet>,
        /// The list by which it stays proven.
        proven_by: Option<String>,
    },
    /// The change was refused.
    Refused {
        /// Why not, and what to do.
        reason: String,
    },
}

/// What is known of all sources.
#[derive(Debug, Serialize, Deserialize)]
pub struct KnownList {
    /// How many sources may be known at once, as configured.
    pub capacity: u32,
    /// How many sources are known, by the names of standings. Unknown ones came, but on too few
    /// occasions.
    pub standings: BTreeMap<String, u64>,
    /// How many of them are vouched for.
    pub vouched: u64,
    /// The present shortage; `None`: there is none.
    pub shortage: Option<ShortageStatus>,
    /// Why handshakes prove no source, though they should; `None`: they do as configured.
    pub handshakes_error: Option<String>,
    /// The sources whose standing is the youngest, the youngest first.
    pub newest: Vec<StandingExplanation>,
}

/// Selects what to return of the known sources.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct KnownQuery {
    /// How many of the newest to return, at most [`MAX_SHOWN`].
    pub limit: usize,
}
