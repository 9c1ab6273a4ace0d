//! What there is to tell of lists.

use serde::{Deserialize, Serialize};

use super::{FeedReport, UsedBy};

/// One list, as it is in force or in a configuration.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListStatus {
    /// Its name.
    pub list: String,
    /// How many IPv4 prefixes it has.
    pub ipv4_prefixes: u64,
    /// How many IPv6 prefixes it has.
    pub ipv6_prefixes: u64,
    /// What uses it.
    pub used_by: Vec<UsedBy>,
    /// Its files.
    pub files: Vec<FeedStatus>,
    /// How old the oldest of what its files have is, in nanoseconds; `None`: nobody knows, or it
    /// has no files.
    pub age_ns: Option<u64>,
    /// After how many nanoseconds a file is stale; `None`: never.
    pub max_age_ns: Option<u64>,
    /// How many entries of its files cannot be read.
    pub bad_lines: u64,
    /// The worst that is to be told of its files.
    pub state: ListState,
}

/// One file of a list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FeedStatus {
    /// What was read.
    #[serde(flatten)]
    pub report: FeedReport,
    /// How old it is, in nanoseconds; `None`: nobody knows.
    pub age_ns: Option<u64>,
    /// How it stands with it.
    pub state: ListState,
}

/// How it stands with a file, or with the worst of a list's files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ListState {
    /// It is in force as it was last read.
    Ok,
    /// It was refused when it was last read: what it had before is in force.
    Old,
    /// It is older than it may be, and in force.
    Stale,
    /// It is older than it may be, and not in force.
    Dropped,
}

impl ListState {
    /// Its name in output.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Old => "old",
            Self::Stale => "stale",
            Self::Dropped => "dropped",
        }
    }

    /// Whether it is older than it may be.
    #[must_use]
    pub const fn is_stale(self) -> bool {
        matches!(self, Self::Stale | Self::Dropped)
    }
}
