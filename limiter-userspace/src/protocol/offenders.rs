//! Who was dropped most.

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

/// The most rows of an [`OffenderList`].
pub const MAX_OFFENDERS: u32 = 1_000;

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
