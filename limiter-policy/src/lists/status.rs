//! The status of lists.

use serde::{Deserialize, Serialize};

use super::{FeedReport, UseFinding};

/// The status of a list, in force or in a configuration.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListStatus {
    /// Its name.
    pub list: String,
    /// The number of its IPv4 prefixes.
    pub ipv4_prefixes: u64,
    /// The number of its IPv6 prefixes.
    pub ipv6_prefixes: u64,
    /// Its uses.
    pub used_by: Vec<UseFinding>,
    /// Its files.
    pub files: Vec<FeedStatus>,
    /// The age of its oldest file, in nanoseconds; `None`: unknown, or no files.
    pub age_ns: Option<u64>,
    /// The age from which a file is stale, in nanoseconds; `None`: never.
    pub max_age_ns: Option<u64>,
    /// The number of unreadable entries in its files.
    pub bad_lines: u64,
    /// The worst state of its files.
    pub state: ListState,
}

/// The status of a list's file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FeedStatus {
    /// The report of reading it.
    #[serde(flatten)]
    pub report: FeedReport,
    /// Its age, in nanoseconds; `None`: unknown.
    pub age_ns: Option<u64>,
    /// Its state.
    pub state: ListState,
}

/// The state of a file, or the worst of a list's files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ListState {
    /// Its last content is in force.
    Ok,
    /// Its last content was refused: its previous content stays in force.
    Old,
    /// It is stale, and in force.
    Stale,
    /// It is stale, and not in force.
    Dropped,
}

impl ListState {
    /// Returns its name in output.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Old => "old",
            Self::Stale => "stale",
            Self::Dropped => "dropped",
        }
    }

    /// Returns whether it is stale.
    #[must_use]
    pub const fn is_stale(self) -> bool {
        matches!(self, Self::Stale | Self::Dropped)
    }
}
