//! Requests and answers about known sources.

use std::collections::BTreeMap;

use ipnet::IpNet;
use jiff::Timestamp;
use limiter_common::standing::Standing;
use serde::{Deserialize, Serialize};

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
    /// Whether what is known ends with the daemon, because it has neither pins nor a state file.
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
        /// Of how many something was known.
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
    /// How many sources are to be known at once, as configured.
    pub capacity: u32,
    /// How many sources are known, by the names of standings. Unknown ones came, but on too few
    /// occasions.
    pub standings: BTreeMap<String, u64>,
    /// For how many of them somebody vouches.
    pub vouched: u64,
    /// The shortage, if there is one.
    pub shortage: Option<ShortageStatus>,
    /// Why handshakes prove nobody, though the policy says so; `None`: they do, or it does not.
    pub handshakes_unseen: Option<String>,
    /// The sources whose standing is the youngest, the youngest first.
    pub newest: Vec<SourceStatus>,
}

/// A shortage: a limit refused somebody for its reserve within the last minute.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShortageStatus {
    /// When it began.
    pub since: Timestamp,
    /// How long ago that was, in nanoseconds.
    pub lasts_ns: u64,
}

/// What is known of a source.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SourceStatus {
    /// The address or, in IPv6, the prefix that is one source.
    pub source: IpNet,
    /// Its standing now.
    pub standing: Standing,
    /// How it got what is known of it; `None`: nothing is known.
    pub by: Option<KnownBy>,
    /// The list that proves it.
    pub list: Option<String>,
    /// When it got its standing; `None`: nobody knows.
    pub since: Option<Timestamp>,
    /// How long ago that was, in nanoseconds.
    pub since_ns: Option<u64>,
    /// Until when it has its standing, whether it comes or not; `None`: as long as it comes.
    pub until: Option<Timestamp>,
    /// Nanoseconds until then.
    pub ends_in_ns: Option<u64>,
    /// When it last came; `None`: nobody knows.
    pub last_visit: Option<Timestamp>,
    /// How long ago that was, in nanoseconds.
    pub last_visit_ns: Option<u64>,
    /// On how many separate occasions it came, at most 15, as far as they were counted.
    pub visits: u32,
}

/// How a source got what is known of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum KnownBy {
    /// It is on a list that proves.
    List,
    /// Somebody vouches for it.
    Operator,
    /// It completed a TCP handshake with this host.
    Handshake,
    /// It came on separate occasions.
    Visits,
    /// It came again after it was refused.
    Retry,
}

impl KnownBy {
    /// Returns the name in output.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::List => "list",
            Self::Operator => "operator",
            Self::Handshake => "handshake",
            Self::Visits => "visits",
            Self::Retry => "retry",
        }
    }
}

/// Selects what to return of the known sources.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct KnownQuery {
    /// How many of the newest to return, at most [`MAX_SHOWN`].
    pub limit: usize,
}
