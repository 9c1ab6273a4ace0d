//! What the command line and the daemon say to each other: types that both take, and that need
//! neither of them.

pub mod bans;
mod explanation;
mod offenders;
mod refill;
mod reload;
pub mod sieves;
mod status;
#[cfg(test)]
pub(crate) mod testing;

use std::{error::Error, net::IpAddr, path::PathBuf};

use ipnet::IpNet;
use limiter_policy::{
    lists::{Findings, ListStatus},
    policy::Policy,
};
use serde::{Deserialize, Serialize};

use self::{
    bans::{BanChanges, BansChanged, BansPage, BansQuery},
    sieves::SieveStatus,
};
pub use self::{
    explanation::{Explanation, LastDrop, LimitExplanation},
    offenders::{
        ALL_PACKETS, Grouping, MAX_OFFENDERS, OffenderList, OffenderQuery, OffenderStatus, dropper,
    },
    refill::{Refill, RefillList, RefundQuery, ResetQuery, Whose},
    reload::{History, LastReload, Reloaded, SettingDiff},
    status::{
        BansStatus, BucketsStatus, DaemonStatus, GuardStatus, InterfaceStatus, LimitStatus,
        PolicyStatus, StateStatus, Status,
    },
};

/// The version of the protocol; a daemon answers no other.
pub const VERSION: u32 = 1;

/// The longest request that the daemon reads, in bytes.
pub const MAX_REQUEST: u64 = 1 << 20;

/// The longest answer that the command line reads, in bytes: a policy of a million overrides
/// takes some 100 MB.
pub const MAX_ANSWER: u64 = 256 << 20;

/// A request or an answer, under its version.
#[derive(Debug, Serialize, Deserialize)]
pub struct Versioned<T> {
    /// The sender's [`VERSION`].
    pub version: u32,
    /// What is said.
    #[serde(flatten)]
    pub body: T,
}

impl<T> Versioned<T> {
    /// Under this build's version.
    pub const fn new(body: T) -> Self {
        Self {
            version: VERSION,
            body,
        }
    }
}

/// What is asked of the daemon.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "command", rename_all = "kebab-case")]
pub enum Request {
    /// What is enforced, where, and what was counted.
    Status,
    /// Which limits apply to an address, and what its buckets hold.
    Explain {
        /// The address.
        address: IpAddr,
    },
    /// Who was dropped most.
    Offenders(OffenderQuery),
    /// Who is banned.
    Bans(BansQuery),
    /// Bans are to be made or lifted.
    ChangeBans(BanChanges),
    /// All bans are to be lifted.
    LiftBans,
    /// Buckets are to be full again.
    Reset(ResetQuery),
    /// Tokens are to be given back.
    Refund(RefundQuery),
    /// The lists, and where their addresses come from.
    Lists,
    /// What the lists say of addresses.
    TestLists {
        /// All those of this prefix; that of an address has full length.
        asked: IpNet,
    },
    /// Feeds of a list that were held back are to be put in force.
    AcceptList {
        /// The list's name.
        list: String,
        /// The digests of the contents that somebody has looked at.
        digests: Vec<String>,
    },
    /// Whom sieves know, and under which pressure they are.
    Sieves {
        /// The sieve's name; `None`: all.
        name: Option<String>,
    },
    /// The policy in force, whole.
    Policy,
    /// To read the configuration again and put it in force.
    Reload,
    /// To keep the policy that waits to be confirmed.
    Confirm,
    /// To detach every program, remove every pin, and end.
    Detach,
}

/// What the daemon answers.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "answer", content = "content", rename_all = "kebab-case")]
pub enum Answer {
    /// To [`Request::Status`].
    Status(Box<Status>),
    /// To [`Request::Explain`].
    Explanation(Explanation),
    /// To [`Request::Offenders`].
    Offenders(OffenderList),
    /// To [`Request::Lists`].
    Lists(Vec<ListStatus>),
    /// To [`Request::AcceptList`].
    Accepted {
        /// The files that are in force now as they are.
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
        /// How many held.
        lifted: u64,
    },
    /// To [`Request::Sieves`].
    Sieves(Vec<SieveStatus>),
    /// To [`Request::Policy`].
    Policy(Box<Policy>),
    /// To [`Request::Reload`].
    Reloaded(Reloaded),
    /// To [`Request::Confirm`].
    Confirmed {
        /// The number of the policy.
        generation: u64,
    },
    /// To [`Request::Detach`]: it will, as soon as the answer is on its way.
    Detaching,
    /// To [`Request::Reset`] and [`Request::Refund`].
    Refilled(RefillList),
    /// It could not be done; errors one a line.
    Error(String),
}

impl Answer {
    /// The answer, or why there is none.
    pub fn told(answer: Result<Self, impl Error>) -> Self {
        answer.unwrap_or_else(|error| Self::Error(error.to_string()))
    }
}
