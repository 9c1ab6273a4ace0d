//! The protocol between the command line and the daemon. Both sides use these types; the types depend on
//! neither.

mod automatic_rate;
pub mod bans;
mod connections;
#[expect(clippy::disallowed_methods, reason = "a daemon waits for its turn")]
pub mod control;
mod explanation;
mod fleet;
pub mod known;
mod offenders;
mod reload;
mod request;
mod reset;
pub mod sieves;
mod standing;
mod status;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
pub mod web;

use serde::{Deserialize, Serialize};

pub use limiter_fleet::rollout::{RolloutPlan, RolloutStatus};

pub use self::{
    automatic_rate::{AutomaticRate, OverloadKind, OverloadStatus},
    connections::{
        ConnectionsStatus, KeyList, KeyQuery, KeyStatus, MOST_KEYS, OpenByLimit, QueueStatus,
        TrackingStatus,
    },
    explanation::{Explanation, LastDrop, LimitExplanation},
    fleet::{FleetBrief, FleetNode, FleetShare, FleetSources, FleetStatus},
    offenders::{
        ALL_PACKETS, Grouping, MAX_OFFENDERS, OffenderList, OffenderQuery, OffenderStatus, dropper,
    },
    reload::{History, LastReload, ReloadResult, SettingDiff},
    request::{
        AcceptList, AcceptedFiles, BansLifted, Call, Confirm, ConfirmedPolicy, Detach, EndPush,
        Explain, Failure, FleetQuery, KnownSourceQuery, LiftBans, ListsQuery, PolicyQuery,
        PushProgress, Reload, Request, Response, SievesQuery, StatusQuery, TestLists,
    },
    reset::{BucketReset, BucketSelector, RefundQuery, ResetList, ResetQuery},
    standing::{
        ReserveExplanation, ShortageStatus, StandingExplanation, StandingReason, StandingStatus,
        StandingTraffic, counted_name, counted_standings,
    },
    status::{
        BansStatus, BucketsStatus, DaemonStatus, GuardStatus, InterfaceStatus, LimitStatus,
        PageStatus, PolicyStatus, QuicNamesStatus, ServerNamesStatus, StateStatus, Status,
    },
};

/// The version of the protocol; a daemon accepts no other.
pub const VERSION: u32 = 4;

/// The longest request that the daemon reads, in bytes.
pub const MAX_REQUEST: u64 = 1 << 20;

/// The most changes in a request: even bans with the longest reasons fit into [`MAX_REQUEST`].
pub const MAX_CHANGES: usize = 1_000;

/// The longest response that the command line reads, in bytes: a policy with a million overrides takes about 100
/// MB.
pub const MAX_RESPONSE: u64 = 256 << 20;

/// A request or a response with its version.
#[derive(Debug, Serialize, Deserialize)]
pub struct Versioned<T> {
    /// The sender's [`VERSION`].
    pub version: u32,
    /// The request or the response.
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
