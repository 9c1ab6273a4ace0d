//! The protocol between the command line and the daemon. Both sides use these types; the types depend on
//! neither.

pub mod bans;
mod connections;
mod explanation;
mod fleet;
pub mod known;
mod offenders;
mod push;
mod refill;
mod reload;
pub mod sieves;
mod standing;
mod status;
#[cfg(test)]
pub(crate) mod testing;

use std::{error::Error, net::IpAddr, path::PathBuf};

use ipnet::IpNet;
use limiter_policy::{
    lists::{Findings, ListStatus},
    policy::{Policy, RequestedName, bans::Origin},
};
use serde::{Deserialize, Serialize};

use self::{
    bans::{BanChanges, BanResults, BansPage, BansQuery},
    known::{KnownChanges, KnownList, KnownQuery, KnownResults},
    sieves::SieveStatus,
};
pub use self::{
    connections::{
        ConnectionsStatus, MOST_OWNERS, OpenByLimit, OwnerList, OwnerQuery, OwnerStatus,
        QueueStatus, TrackingStatus,
    },
    explanation::{Explanation, LastDrop, LimitExplanation},
    fleet::{FleetBrief, FleetNode, FleetShare, FleetSources, FleetStatus},
    offenders::{
        ALL_PACKETS, Grouping, MAX_OFFENDERS, OffenderList, OffenderQuery, OffenderStatus, dropper,
    },
    push::{PushNode, PushQuery, PushStatus},
    refill::{BucketSelector, Refill, RefillList, RefundQuery, ResetQuery},
    reload::{History, LastReload, ReloadResult, SettingDiff},
    standing::{
        ReserveExplanation, ShortageStatus, StandingExplanation, StandingReason, StandingStatus,
        StandingTraffic, counted_name, counted_standings,
    },
    status::{
        AutomaticRate, BansStatus, BucketsStatus, DaemonStatus, GuardStatus, InterfaceStatus,
        LimitStatus, OverloadStatus, PageStatus, PolicyStatus, QuicNamesStatus, ServerNamesStatus,
        StateStatus, Status,
    },
};

/// The version of the protocol; a daemon accepts no other.
pub const VERSION: u32 = 3;

/// The longest request that the daemon reads, in bytes.
pub const MAX_REQUEST: u64 = 1 << 20;

/// The most changes in a request: even bans with the longest reasons fit into [`MAX_REQUEST`].
pub const MAX_CHANGES: usize = 1_000;

/// The longest answer that the command line reads, in bytes: a policy with a million overrides takes about 100
/// MB.
pub const MAX_ANSWER: u64 = 256 << 20;

/// A request or an answer with its version.
#[derive(Debug, Serialize, Deserialize)]
pub struct Versioned<T> {
    /// The sender's [`VERSION`].
    pub version: u32,
    /// The request or the answer.
    pub body: T,
}

impl<T> Versioned<T> {
    /// Wraps a body with this build's version.
    pub const fn new(body: T) -> Self {
        Self {
            version: VERSION,
            body,
        }
    }
}

/// The version alone: the rest of a message of another version may not parse.
#[derive(Debug, Deserialize)]
pub struct Version {
    /// The sender's [`VERSION`].
    pub version: u32,
}

/// A request to the daemon.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Request {
    /// Get the enforced policy, the interfaces and the counters.
    Status,
    /// Get the limits that apply to an address, and the levels of its buckets.
    Explain {
        /// The address.
        address: IpAddr,
        /// The destination, for limits with a bucket per destination; `None`: the host's own addresses.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        to: Option<IpAddr>,
        /// The requested name, for limits that count packets by name; `None`: these limits are left out.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        asked_for: Option<RequestedName>,
    },
    /// Get the sources that were dropped most.
    Offenders(OffenderQuery),
    /// Get the owners with the most open connections.
    Connections(OwnerQuery),
    /// Get the bans in force.
    Bans(BansQuery),
    /// Make or lift bans.
    ChangeBans(BanChanges),
    /// Lift all bans.
    LiftBans {
        /// Only bans of this origin; `None`: of all.
        origin: Option<Origin>,
    },
    /// Get the number of known sources, and the newest.
    Known(KnownQuery),
    /// Get the standing of an address's source.
    KnownSource {
        /// The address.
        address: IpAddr,
    },
    /// Vouch for sources, or forget them.
    ChangeKnown(KnownChanges),
    /// Refill buckets.
    Reset(ResetQuery),
    /// Give tokens back.
    Refund(RefundQuery),
    /// Get the lists, and the origins of their addresses.
    Lists,
    /// Get the lists that contain an address or a prefix.
    TestLists {
        /// The prefix; an address has full length.
        asked: IpNet,
    },
    /// Accept feeds of a list that were held back.
    AcceptList {
        /// The list's name.
        list: String,
        /// The digests of the contents that an operator has checked.
        digests: Vec<String>,
    },
    /// Get the sieves: the addresses they know and their pressure.
    Sieves {
        /// The sieve's name; `None`: all.
        name: Option<String>,
    },
    /// Get the state of the fleet.
    Fleet,
    /// Push a policy to all nodes of the fleet.
    Push(PushQuery),
    /// Get the progress of the push. Without these queries, the push is rolled back.
    PushStatus,
    /// Keep the policy on all nodes, or roll it back.
    EndPush {
        /// Whether to keep it.
        keep: bool,
    },
    /// Get the whole policy in force.
    Policy,
    /// Read the configuration again and put it in force.
    Reload,
    /// Keep the policy that waits to be confirmed.
    Confirm,
    /// Detach every program, remove every pin, and end.
    Detach,
}

impl Request {
    /// Returns whether it changes nothing.
    #[must_use]
    pub const fn is_query(&self) -> bool {
        match self {
            Self::Status
            | Self::Explain { .. }
            | Self::Offenders(_)
            | Self::Connections(_)
            | Self::Bans(_)
            | Self::Known(_)
            | Self::KnownSource { .. }
            | Self::Lists
            | Self::TestLists { .. }
            | Self::Sieves { .. }
            | Self::Fleet
            | Self::Policy => true,
            Self::ChangeBans(_)
            | Self::LiftBans { .. }
            | Self::ChangeKnown(_)
            | Self::Reset(_)
            | Self::Refund(_)
            | Self::AcceptList { .. }
            | Self::Push(_)
            | Self::PushStatus
            | Self::EndPush { .. }
            | Self::Reload
            | Self::Confirm
            | Self::Detach => false,
        }
    }
}

/// An answer of the daemon.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Answer {
    /// To [`Request::Status`].
    Status(Box<Status>),
    /// To [`Request::Explain`].
    Explanation(Box<Explanation>),
    /// To [`Request::Offenders`].
    Offenders(OffenderList),
    /// To [`Request::Connections`].
    Connections(OwnerList),
    /// To [`Request::Lists`].
    Lists(Vec<ListStatus>),
    /// To [`Request::AcceptList`].
    Accepted {
        /// The files now in force with their current content.
        files: Vec<PathBuf>,
    },
    /// To [`Request::TestLists`].
    Findings(Findings),
    /// To [`Request::Bans`].
    Bans(BansPage),
    /// To [`Request::ChangeBans`].
    BansChanged(BanResults),
    /// To [`Request::LiftBans`].
    BansLifted {
        /// How many were in force.
        lifted: u64,
    },
    /// To [`Request::Known`].
    Known(KnownList),
    /// To [`Request::KnownSource`].
    KnownSource(StandingExplanation),
    /// To [`Request::ChangeKnown`].
    KnownChanged(KnownResults),
    /// To [`Request::Sieves`].
    Sieves(Vec<SieveStatus>),
    /// To [`Request::Fleet`].
    Fleet(Box<FleetStatus>),
    /// To [`Request::Push`], [`Request::PushStatus`] and [`Request::EndPush`].
    Push(PushStatus),
    /// To [`Request::Policy`].
    Policy(Box<Policy>),
    /// To [`Request::Reload`].
    Reloaded(ReloadResult),
    /// To [`Request::Confirm`].
    Confirmed {
        /// The number of the policy.
        generation: u64,
    },
    /// To [`Request::Detach`]: the daemon detaches as soon as the answer is sent.
    Detaching,
    /// To [`Request::Reset`] and [`Request::Refund`].
    Refilled(RefillList),
    /// The request failed; one error per line.
    Error(String),
}

impl Answer {
    /// Converts a result to an answer, an error to [`Answer::Error`].
    pub fn from_result(answer: Result<Self, impl Error>) -> Self {
        answer.unwrap_or_else(|error| Self::Error(error.to_string()))
    }
}
