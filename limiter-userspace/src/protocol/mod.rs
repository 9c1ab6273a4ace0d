//! The protocol between the command line and the daemon: types that both use and that depend on
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
    policy::{AskedFor, Policy, bans::Origin},
};
use serde::{Deserialize, Serialize};

use self::{
    bans::{BanChanges, BansChanged, BansPage, BansQuery},
    known::{KnownChanged, KnownChanges, KnownList, KnownQuery},
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
    reload::{History, LastReload, Reloaded, SettingDiff},
    standing::{
        ReserveExplanation, ShortageStatus, StandingExplanation, StandingStatus, StandingTraffic,
        Why, counted_name, counted_standings,
    },
    status::{
        AutomaticRate, BansStatus, BucketsStatus, DaemonStatus, DistressStatus, GuardStatus,
        InterfaceStatus, LimitStatus, PageStatus, PolicyStatus, QuicNamesStatus, ServerNamesStatus,
        StateStatus, Status,
    },
};

/// The version of the protocol; a daemon accepts no other.
pub const VERSION: u32 = 3;

/// The longest request that the daemon reads, in bytes.
pub const MAX_REQUEST: u64 = 1 << 20;

/// The most changes in a request: even bans with the longest reasons fit into the longest request.
pub const MAX_CHANGES: usize = 1_000;

/// The longest answer that the command line reads, in bytes: a policy of a million overrides
/// takes about 100 MB.
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
    /// Adds this build's version.
    pub const fn new(body: T) -> Self {
        Self {
            version: VERSION,
            body,
        }
    }
}

/// The version of a request or an answer whose rest may mean anything.
#[derive(Debug, Deserialize)]
pub struct Version {
    /// The sender's [`VERSION`].
    pub version: u32,
}

/// A request to the daemon.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Request {
    /// Get what is enforced, where, and what was counted.
    Status,
    /// Get the limits that apply to an address, and what its buckets hold.
    Explain {
        /// The address.
        address: IpAddr,
        /// The destination, for limits that give each a bucket; `None`: the host's own addresses.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        to: Option<IpAddr>,
        /// The name that it asks for, for limits that count packets by that; `None`: they are left out.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        asked_for: Option<AskedFor>,
    },
    /// Get the sources that were dropped most.
    Offenders(OffenderQuery),
    /// Get who has the most connections open.
    Connections(OwnerQuery),
    /// Get the bans in force.
    Bans(BansQuery),
    /// Make or lift bans.
    ChangeBans(BanChanges),
    /// Lift all bans.
    LiftBans {
        /// Only those of this origin; `None`: everybody's.
        origin: Option<Origin>,
    },
    /// Get how many sources are known, and the newest.
    Known(KnownQuery),
    /// Get what is known of the source of an address.
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
    /// Get the lists, and where their addresses come from.
    Lists,
    /// Get the lists that contain an address or a prefix.
    TestLists {
        /// The prefix; an address has full length.
        asked: IpNet,
    },
    /// Put in force feeds of a list that were held back.
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
    /// Get what is known of the fleet.
    Fleet,
    /// Push a policy to all nodes of the fleet.
    Push(PushQuery),
    /// Get how far that is. A push is taken back if nobody asks.
    PushStatus,
    /// Keep the policy on all nodes, or have it taken back.
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
    /// Returns whether it only looks, and changes nothing.
    #[must_use]
    pub const fn only_looks(&self) -> bool {
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
        /// The files whose current content is now in force.
        files: Vec<PathBuf>,
    },
    /// To [`Request::TestLists`].
    Findings(Findings),
    /// To [`Request::Bans`].
    Bans(BansPage),
    /// To [`Request::ChangeBans`].
    BansChanged(BansChanged),
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
    KnownChanged(KnownChanged),
    /// To [`Request::Sieves`].
    Sieves(Vec<SieveStatus>),
    /// To [`Request::Fleet`].
    Fleet(Box<FleetStatus>),
    /// To [`Request::Push`], [`Request::PushStatus`] and [`Request::EndPush`].
    Push(PushStatus),
    /// To [`Request::Policy`].
    Policy(Box<Policy>),
    /// To [`Request::Reload`].
    Reloaded(Reloaded),
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
    /// Returns the answer, or the error as an answer.
    pub fn told(answer: Result<Self, impl Error>) -> Self {
        answer.unwrap_or_else(|error| Self::Error(error.to_string()))
    }
}
