//! Responses about an address.

use std::net::IpAddr;

use limiter_common::answer::Answer;
use limiter_policy::{lists::Findings, policy::Mode};
use serde::{Deserialize, Serialize};

use super::{
    bans::BanStatus,
    sieves::SieveExplanation,
    standing::{ReserveExplanation, StandingExplanation},
};

/// The limits that apply to an address, and the levels of its buckets.
#[derive(Debug, Serialize, Deserialize)]
pub struct Explanation {
    /// The address.
    pub address: IpAddr,
    /// The lists that contain it, and their effect.
    pub lists: Findings,
    /// Its standing; `None`: no limit uses standing, or lists decide on the address alone.
    pub standing: Option<StandingExplanation>,
    /// The limits that apply, in the order of their ids.
    pub limits: Vec<LimitExplanation>,
    /// The bans that contain it, the widest first.
    pub bans: Vec<BanStatus>,
    /// The last drop of a packet from the address; `None`: never, or it is not remembered.
    pub last_drop: Option<LastDrop>,
    /// How many TCP connections from this host to the address are open and recorded: no limit and no sieve
    /// refuses their segments. `None`: the policy does not exempt own connections.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub own_connections: Option<u64>,
    /// The effect of each sieve; empty: the address is excluded from sieves.
    pub sieves: Vec<SieveExplanation>,
}

/// The last drop of an address.
#[derive(Debug, Serialize, Deserialize)]
pub struct LastDrop {
    /// The limit that dropped it; [`ALL_PACKETS`](super::ALL_PACKETS) for a sieve for all packets.
    pub limit: String,
    /// The sieve that dropped it; `None`: the limit's budget was used up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sieve: Option<String>,
    /// Packets from the address that this limit dropped.
    pub drops: u64,
    /// Whether `drops` is a lower bound.
    pub lower_bound: bool,
    /// Nanoseconds since the first drop.
    pub first_drop_ago_ns: u64,
    /// Nanoseconds since the last drop.
    pub last_drop_ago_ns: u64,
}

/// A limit as it applies to the address.
#[derive(Debug, Serialize, Deserialize)]
pub struct LimitExplanation {
    /// The limit's name.
    pub limit: String,
    /// The bucket's key: an address, range, subscriber, destination, interface, zone or question.
    pub id: String,
    /// The interface that the bucket is for; `None`: for all.
    pub interface: Option<String>,
    /// Its mode, not [`Mode::Off`].
    pub mode: Mode,
    /// Its strategy.
    pub strategy: String,
    /// Which of the address's packets it counts, as `limiter check` shows it; `None`: all.
    #[serde(rename = "match")]
    pub matching: Option<String>,
    /// Whether it counts only sources of standings other than the address's present one.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub other_standing: bool,
    /// The tokens it reserves from the address; `None`: it reserves none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reserve: Option<ReserveExplanation>,
    /// The answer sent when it refuses a packet of the address; `None`: it sends none, or counts no packets of
    /// the address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<Answer>,
    /// One in this many packets gets a truncated answer; `None`: each does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slip: Option<u8>,
    /// `default`, `automatic`, or `override` and its id.
    pub source: String,
    /// How many connections the key has open, of `burst`; `None`: the limit does not count connections.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connections: Option<u64>,
    /// How many clients wait in line for the key's connections; `None`: the limit has no queue.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waiting: Option<u64>,
    /// Tokens that a full bucket holds; `None`: it is a window, which holds `count`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub burst: Option<u64>,
    /// Tokens added every period, or admitted in a window.
    pub count: u64,
    /// The period in nanoseconds.
    pub period_ns: u64,
    /// Whole tokens left.
    pub remaining: u64,
    /// Nanoseconds until one token can be spent.
    pub retry_in_ns: u64,
    /// Nanoseconds until the bucket is full, when past packets no longer count.
    pub reset_in_ns: u64,
}
