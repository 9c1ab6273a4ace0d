//! Requests and responses about offenders.

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

/// The most rows of an [`OffenderList`].
pub const MAX_OFFENDERS: u32 = 1_000;

/// Selects offenders, and how to group them.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct OffenderQuery {
    /// Only offenders that this limit dropped; `None`: all.
    pub limit: Option<String>,
    /// Only rows with a drop within this many nanoseconds; `None`: all.
    pub within_ns: Option<u64>,
    /// How to group them.
    pub by: Grouping,
    /// The most rows to return, at most [`MAX_OFFENDERS`].
    pub count: u32,
}

/// How offenders are grouped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Grouping {
    /// One row per address.
    Address,
    /// One row per IPv4 /24 or IPv6 /64.
    Range,
    /// One row per zone, domain, question or server name that they asked for, of limits that have a bucket
    /// for it.
    Name,
}

/// Stands in place of a limit's name for a sieve for all packets.
pub const ALL_PACKETS: &str = "*";

/// Names the limit, the sieve that it uses, or the sieve for all packets that drops packets.
#[must_use]
pub fn dropper(limit: &str, sieve: Option<&str>) -> String {
    match (sieve, limit) {
        (None, _) => limit.to_owned(),
        (Some(sieve), ALL_PACKETS) => format!("sieve {sieve}"),
        (Some(sieve), _) => format!("{limit} (sieve {sieve})"),
    }
}

/// The offenders that were dropped most.
#[derive(Debug, Serialize, Deserialize)]
pub struct OffenderList {
    /// How many offenders may be remembered.
    pub capacity: u32,
    /// How many are remembered.
    pub remembered: u64,
    /// How many were forgotten for lack of room.
    pub forgotten: u64,
    /// Drops of all offenders that were recorded.
    pub recorded: u64,
    /// Drops that were not recorded for lack of allowance.
    pub skipped: u64,
    /// Whether the offenders' drops are lower bounds.
    pub lower_bound: bool,
    /// The offenders that the query selects, with the most drops first.
    pub offenders: Vec<OffenderStatus>,
}

/// A source that a limit or its sieve dropped, or a name that dropped packets asked for.
#[derive(Debug, Serialize, Deserialize)]
pub struct OffenderStatus {
    /// The limit's name; [`ALL_PACKETS`] for a sieve for all packets.
    pub limit: String,
    /// The sieve that dropped its packets; `None`: the limit's budget was used up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sieve: Option<String>,
    /// The source address, the range, or the name.
    pub id: String,
    /// How many addresses were dropped; for a range, as many as are remembered. 0 for a name: its clients are
    /// not counted.
    pub addresses: u64,
    /// Packets dropped.
    pub drops: u64,
    /// Nanoseconds since the first drop.
    pub first_drop_ago_ns: u64,
    /// Nanoseconds since the last drop.
    pub last_drop_ago_ns: u64,
}

impl OffenderStatus {
    /// Names the limit or sieve that dropped the packets.
    #[must_use]
    pub fn dropper(&self) -> String {
        dropper(&self.limit, self.sieve.as_deref())
    }
}
