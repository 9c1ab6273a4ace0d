//! Which limits apply to an address.

use std::net::IpAddr;

use limiter_policy::lists::Findings;
use serde::{Deserialize, Serialize};

use super::{bans::BanStatus, sieves::SieveExplanation};

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
