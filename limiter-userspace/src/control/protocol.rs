//! What the command line and the daemon say to each other.

use std::{collections::BTreeMap, net::IpAddr};

use clap::ValueEnum;
use jiff::Timestamp;
use limiter_common::counters::{LimitTraffic, Traffic};
use serde::{Deserialize, Serialize};

/// The version of the protocol; a daemon answers no other.
pub const VERSION: u32 = 1;

/// The longest line either side reads, in bytes.
pub const MAX_LINE: u64 = 1 << 20;

/// The most rows of an [`OffenderList`], which must fit a line.
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
    Status(Status),
    /// To [`Request::Explain`].
    Explanation(Explanation),
    /// To [`Request::Offenders`].
    Offenders(OffenderList),
    /// It could not be done; one line.
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
    /// Packets by reason, over all interfaces.
    pub reasons: BTreeMap<String, u64>,
    /// What each limit did.
    pub limits: BTreeMap<String, LimitStatus>,
}

/// One interface.
#[derive(Debug, Serialize, Deserialize)]
pub struct InterfaceStatus {
    /// Its name.
    pub name: String,
    /// `native` or `generic`.
    pub mode: String,
    /// Whether the program is on it now; an interface may vanish.
    pub attached: bool,
    /// When the program was attached.
    pub since: Timestamp,
    /// Why native mode was not had, when it was wished for.
    pub fell_back: Option<String>,
}

/// The policy in force.
#[derive(Debug, Serialize, Deserialize)]
pub struct PolicyStatus {
    /// Counts the policies this daemon has loaded, from 1.
    pub generation: u64,
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
    /// `table` or `hash`.
    pub store: String,
    /// How many there may be.
    pub capacity: u32,
    /// Buckets in debt that the table forgot for want of room; the hash map does not tell.
    pub lossy_evictions: u64,
}

/// What one limit did to the packets it matched.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct LimitStatus {
    /// `enforce`, `observe` or `off`.
    pub mode: String,
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
    /// The limits that apply, in the order of their ids.
    pub limits: Vec<LimitExplanation>,
    /// When a packet of the address was last dropped; `None`: never, or it is not remembered.
    pub last_drop: Option<LastDrop>,
}

/// The last drop of an address.
#[derive(Debug, Serialize, Deserialize)]
pub struct LastDrop {
    /// The limit that dropped it.
    pub limit: String,
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

/// Who was dropped by one limit.
#[derive(Debug, Serialize, Deserialize)]
pub struct OffenderStatus {
    /// The limit's name.
    pub limit: String,
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

/// What one limit has for the address.
#[derive(Debug, Serialize, Deserialize)]
pub struct LimitExplanation {
    /// The limit's name.
    pub limit: String,
    /// Whose budget: the address, range, subscriber or interface that names the bucket.
    pub id: String,
    /// `enforce` or `observe`.
    pub mode: String,
    /// Which of the address's packets it counts, as `limiter check` has it; `None`: all.
    #[serde(rename = "match")]
    pub matching: Option<String>,
    /// `default`, or `override` and its id.
    pub source: String,
    /// Tokens a full bucket holds.
    pub burst: u64,
    /// Tokens added every period.
    pub count: u64,
    /// The period in nanoseconds.
    pub period_ns: u64,
    /// Whole tokens left.
    pub remaining: u64,
    /// Nanoseconds until one token can be spent.
    pub retry_in_ns: u64,
    /// Nanoseconds until the bucket is full.
    pub reset_in_ns: u64,
}
