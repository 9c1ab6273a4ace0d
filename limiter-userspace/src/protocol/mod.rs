//! What the command line and the daemon say to each other.

use std::{
    collections::BTreeMap,
    net::{IpAddr, SocketAddr},
    path::PathBuf,
};

use clap::ValueEnum;
use ipnet::IpNet;
use jiff::Timestamp;
use limiter_common::counters::{LimitTraffic, Traffic};
use limiter_policy::{
    config::{Bans, Buckets, Offenders},
    lists::{Findings, ListStatus},
    policy::{FlatMetrics, Policy},
};
use serde::{Deserialize, Serialize};

use super::{
    bans::{BanChanges, BanStatus, BansChanged, BansPage, BansQuery},
    settings::SettingDiff,
    sieves::{SieveBrief, SieveExplanation, SieveStatus},
};
use crate::daemon::History;

/// The version of the protocol; a daemon answers no other.
pub const VERSION: u32 = 1;

/// The longest request that the daemon reads, in bytes.
pub const MAX_REQUEST: u64 = 1 << 20;

/// The longest answer that the command line reads, in bytes: a policy of a million overrides
/// takes some 100 MB.
pub const MAX_ANSWER: u64 = 256 << 20;

/// The most rows of an [`OffenderList`].
pub const MAX_OFFENDERS: u32 = 1_000;

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

/// Which buckets are to be full again.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ResetQuery {
    /// Whose.
    pub whose: Whose,
    /// Only that of the limit of this name; `None`: those of all limits.
    pub limit: Option<String>,
}

/// Whose buckets are meant: all that packets from there are charged to, also those that they
/// share with others.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Whose {
    /// Those of one address.
    Address(IpAddr),
    /// Those of all addresses of a prefix.
    Prefix(IpNet),
    /// Everybody's.
    All,
}

/// Which tokens are to be given back.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RefundQuery {
    /// To this address.
    pub address: IpAddr,
    /// By the limit of this name.
    pub limit: String,
    /// How many.
    pub cost: u64,
}

/// Which offenders to tell, and how.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct OffenderQuery {
    /// Only those whom the limit of this name dropped; `None`: all.
    pub limit: Option<String>,
    /// Only rows with a drop within the last so many nanoseconds; `None`: all.
    #[serde(default)]
    pub within_ns: Option<u64>,
    /// Which of them are told as one.
    pub by: Grouping,
    /// How many to tell at most; at most [`MAX_OFFENDERS`].
    pub count: u32,
}

/// Which offenders are told as one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Grouping {
    /// Each address by itself.
    Address,
    /// Those of one IPv4 /24 or IPv6 /64.
    Range,
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

/// What is enforced, where, and what was counted.
#[derive(Debug, Serialize, Deserialize)]
pub struct Status {
    /// The interfaces.
    pub interfaces: Vec<InterfaceStatus>,
    /// The policy.
    pub policy: PolicyStatus,
    /// Where the buckets are.
    pub buckets: BucketsStatus,
    /// How many of those who were dropped are remembered.
    pub offenders: Offenders,
    /// How many addresses and ranges are banned.
    pub bans: BansStatus,
    /// Where all of it is pinned; `None`: it ends with the daemon.
    pub pinned: Option<PathBuf>,
    /// The daemon; `None`: none is running, what is pinned is enforced.
    pub daemon: Option<DaemonStatus>,
    /// Packets by reason, over all interfaces.
    pub reasons: BTreeMap<String, u64>,
    /// What each limit did.
    pub limits: BTreeMap<String, LimitStatus>,
    /// The lists.
    pub lists: Vec<ListStatus>,
    /// The sieves.
    #[serde(default)]
    pub sieves: Vec<SieveBrief>,
}

/// The daemon.
#[derive(Debug, Serialize, Deserialize)]
pub struct DaemonStatus {
    /// Where Prometheus finds the metrics; `None`: nowhere.
    pub metrics: Option<SocketAddr>,
    /// The state file; `None`: nothing is kept.
    pub state: Option<StateStatus>,
    /// How often the configuration was read again, and what came of it.
    pub reloads: History,
    /// Whether it is known whom not to ban.
    #[serde(default)]
    pub guard: GuardStatus,
}

/// The guard, which speaks for those whom nobody is to ban.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct GuardStatus {
    /// Since when it can tell whom not to ban, or cannot.
    pub since: Timestamp,
    /// Why it cannot, so that nobody is banned automatically; `None`: it can.
    pub error: Option<String>,
    /// When it could the last time; `None`: never since the daemon was started.
    pub answered_at: Option<Timestamp>,
    /// How many addresses there were then, without those of `never-ban`.
    pub protected: usize,
    /// Whether anybody on this machine writes down who has logged in.
    pub sessions_recorded: bool,
}

/// What a reload has put in force.
#[derive(Debug, Serialize, Deserialize)]
pub struct Reloaded {
    /// The number of the policy.
    pub generation: u64,
    /// How many limits it has.
    pub limits: usize,
    /// How many overrides they have.
    pub overrides: usize,
    /// The limits that have another strategy than before, and so begin anew.
    #[serde(default)]
    pub begun_anew: Vec<String>,
    /// The interfaces that are not there.
    pub waiting_for: Vec<String>,
    /// What is in the configuration and takes a restart.
    pub after_restart: Vec<SettingDiff>,
    /// In how many nanoseconds it is reverted, unless it is confirmed.
    pub confirm_within_ns: Option<u64>,
}

/// One interface.
#[derive(Debug, Serialize, Deserialize)]
pub struct InterfaceStatus {
    /// Its name.
    pub name: String,
    /// `native` or `generic`; `None`: it was never there.
    pub mode: Option<String>,
    /// Whether the program is on it now; it is again when one that has vanished appears.
    pub attached: bool,
    /// What it is called now, if that is another name.
    #[serde(default)]
    pub renamed: Option<String>,
    /// Whether it is in another network namespace now.
    #[serde(default)]
    pub elsewhere: bool,
    /// Whether another interface has the name now, which is not limited yet.
    #[serde(default)]
    pub replaced: bool,
    /// When the program was attached.
    pub since: Option<Timestamp>,
    /// Why native mode was not had, when it was wished for.
    pub fell_back: Option<String>,
}

/// The policy in force.
#[derive(Debug, Serialize, Deserialize)]
pub struct PolicyStatus {
    /// Counts the policies that were in force, from 1: since the daemon runs, or since they are
    /// pinned.
    pub generation: u64,
    /// When it was loaded.
    pub loaded_at: Timestamp,
    /// How many limits it has.
    pub limits: usize,
    /// How many overrides they have.
    pub overrides: usize,
    /// What is done to malformed packets: `drop` or `pass`.
    pub malformed: String,
}

/// Where the buckets are.
#[derive(Debug, Serialize, Deserialize)]
pub struct BucketsStatus {
    /// In which store, how many there may be, and what happens beyond.
    #[serde(flatten)]
    pub settings: Buckets,
    /// Buckets in debt that the table forgot for want of room; the hash map does not tell.
    pub lossy_evictions: u64,
}

/// How many addresses and ranges are banned.
#[derive(Debug, Serialize, Deserialize)]
pub struct BansStatus {
    /// How many there may be.
    #[serde(flatten)]
    pub settings: Bans,
    /// How many IPv4 addresses and ranges are.
    pub ipv4: u32,
    /// How many IPv6 addresses and ranges are.
    pub ipv6: u32,
}

/// The state file.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct StateStatus {
    /// Its path.
    pub file: PathBuf,
    /// When it was last saved; `None`: not since the daemon was started.
    pub saved_at: Option<Timestamp>,
    /// How many buckets in debt it has since.
    pub buckets: u64,
    /// How many bans it has since, also those that have ended and are remembered.
    pub bans: u64,
    /// How often it could not be saved since the daemon was started.
    pub errors: u64,
    /// Why it could not be saved the last time; `None`: it could.
    pub error: Option<String>,
}

/// What one limit did to the packets it matched.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct LimitStatus {
    /// `enforce`, `observe` or `off`.
    pub mode: String,
    /// By which rule it counts.
    pub strategy: String,
    /// Packets charged and passed.
    pub passed_packets: u64,
    /// Bytes of those.
    pub passed_bytes: u64,
    /// Packets dropped by this limit.
    pub dropped_packets: u64,
    /// Bytes of those.
    pub dropped_bytes: u64,
    /// Packets that it would have dropped, if it did more than observe.
    pub would_drop_packets: u64,
    /// Bytes of those.
    pub would_drop_bytes: u64,
    /// What the names of its metrics are made of in Traffic Server; `None`: it has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metrics: Option<FlatMetrics>,
}

impl From<&LimitStatus> for LimitTraffic {
    fn from(status: &LimitStatus) -> Self {
        let traffic = |packets, bytes| Traffic { packets, bytes };
        Self {
            passed: traffic(status.passed_packets, status.passed_bytes),
            dropped: traffic(status.dropped_packets, status.dropped_bytes),
            would_drop: traffic(status.would_drop_packets, status.would_drop_bytes),
        }
    }
}

/// Which limits apply to an address, and what its buckets hold.
#[derive(Debug, Serialize, Deserialize)]
pub struct Explanation {
    /// The address.
    pub address: IpAddr,
    /// What lists say of it.
    pub lists: Findings,
    /// The limits that apply, in the order of their ids.
    pub limits: Vec<LimitExplanation>,
    /// The bans that it is in, the widest first.
    pub bans: Vec<BanStatus>,
    /// When a packet of the address was last dropped; `None`: never, or it is not remembered.
    pub last_drop: Option<LastDrop>,
    /// What each sieve has for it; none where it is excluded from them.
    #[serde(default)]
    pub sieves: Vec<SieveExplanation>,
}

/// In place of the limit of a sieve that is for all packets.
pub const ALL_PACKETS: &str = "*";

/// Who drops packets, for people: a limit, a sieve that it uses, or a sieve for all packets.
#[must_use]
pub fn dropper(limit: &str, sieve: Option<&str>) -> String {
    match (sieve, limit) {
        (None, _) => limit.to_owned(),
        (Some(sieve), ALL_PACKETS) => format!("sieve {sieve}"),
        (Some(sieve), _) => format!("{limit} (sieve {sieve})"),
    }
}

/// The last drop of an address.
#[derive(Debug, Serialize, Deserialize)]
pub struct LastDrop {
    /// The limit that dropped it; [`ALL_PACKETS`]: a sieve for all packets.
    pub limit: String,
    /// The sieve that did so; `None`: the limit's budget was used up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sieve: Option<String>,
    /// Packets of the address that this limit dropped.
    pub drops: u64,
    /// Whether it may have dropped more than those.
    pub lower_bound: bool,
    /// Nanoseconds since the first of them.
    pub first_drop_ago_ns: u64,
    /// Nanoseconds since the last of them.
    pub last_drop_ago_ns: u64,
}

/// Who was dropped most.
#[derive(Debug, Serialize, Deserialize)]
pub struct OffenderList {
    /// How many offenders may be remembered.
    pub capacity: u32,
    /// How many are.
    pub remembered: u64,
    /// How many were, and were forgotten for want of room.
    pub forgotten: u64,
    /// Drops that were recorded, of all offenders.
    pub recorded: u64,
    /// Drops that were not, for want of budget.
    pub skipped: u64,
    /// Whether the offenders may have been dropped more often than is said of them.
    pub lower_bound: bool,
    /// Those who were asked for, with the most drops first.
    pub offenders: Vec<OffenderStatus>,
}

/// A source that one limit dropped, or its sieve.
#[derive(Debug, Serialize, Deserialize)]
pub struct OffenderStatus {
    /// The limit's name; [`ALL_PACKETS`]: that of a sieve for all packets.
    pub limit: String,
    /// The sieve that dropped them; `None`: the limit's budget was used up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sieve: Option<String>,
    /// The source address, or the range.
    pub id: String,
    /// How many addresses were dropped; of a range, those that are remembered.
    pub addresses: u64,
    /// Packets dropped.
    pub drops: u64,
    /// Nanoseconds since the first of them.
    pub first_drop_ago_ns: u64,
    /// Nanoseconds since the last of them.
    pub last_drop_ago_ns: u64,
}

impl OffenderStatus {
    /// Who dropped the packets, for people.
    #[must_use]
    pub fn dropper(&self) -> String {
        dropper(&self.limit, self.sieve.as_deref())
    }
}

/// What was given back.
#[derive(Debug, Serialize, Deserialize)]
pub struct RefillList {
    /// How many buckets owed something, and were given back all or some of it.
    pub buckets: u64,
    /// Each bucket of the address, also one that was full; empty where none was named.
    pub of_address: Vec<Refill>,
}

/// What was given back to one bucket of an address.
#[derive(Debug, Serialize, Deserialize)]
pub struct Refill {
    /// The limit's name.
    pub limit: String,
    /// Whose budget: the address, range, subscriber or interface that names the bucket.
    pub id: String,
    /// The interface that the bucket is for; `None`: for all.
    pub interface: Option<String>,
    /// The limit's strategy.
    pub strategy: String,
    /// Tokens a full bucket holds; `None`: it is a window.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub burst: Option<u64>,
    /// Tokens of a window; `None`: it is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<u64>,
    /// Whole tokens that were left before.
    pub remaining_before: u64,
    /// Whole tokens that are left now.
    pub remaining: u64,
}

/// What one limit has for the address.
#[derive(Debug, Serialize, Deserialize)]
pub struct LimitExplanation {
    /// The limit's name.
    pub limit: String,
    /// Whose budget: the address, range, subscriber or interface that names the bucket.
    pub id: String,
    /// The interface that the bucket is for; `None`: for all.
    pub interface: Option<String>,
    /// `enforce` or `observe`.
    pub mode: String,
    /// By which rule it counts.
    pub strategy: String,
    /// Which of the address's packets it counts, as `limiter check` has it; `None`: all.
    #[serde(rename = "match")]
    pub matching: Option<String>,
    /// `default`, or `override` and its id.
    pub source: String,
    /// Tokens a full bucket holds; `None`: it is a window, and those are `count`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub burst: Option<u64>,
    /// Tokens added every period, or of a window of a period.
    pub count: u64,
    /// The period in nanoseconds.
    pub period_ns: u64,
    /// Whole tokens left.
    pub remaining: u64,
    /// Nanoseconds until one token can be spent.
    pub retry_in_ns: u64,
    /// Nanoseconds until the bucket is full: until nothing counts any more that came so far.
    pub reset_in_ns: u64,
}
