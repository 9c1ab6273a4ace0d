//! What came of reading a feed file.

use std::path::PathBuf;

use ipnet::IpNet;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::{bounds::Baseline, coverage::Coverage, format::Format};
use crate::text;

/// A line of a feed file that could not be read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BadLine {
    /// The line, counted from 1.
    pub line: u64,
    /// What is wrong with it, on one line.
    pub message: String,
}

/// What came of reading a feed file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FeedReport {
    /// The file.
    pub path: PathBuf,
    /// What it is written in.
    pub format: Format,
    /// How many entries could be read.
    pub entries: u64,
    /// How many could not.
    pub bad: u64,
    /// The first ten of those.
    pub first_bad: Vec<BadLine>,
    /// When the file was changed last; `None`: the system does not tell.
    pub modified: Option<Timestamp>,
    /// How much it covers.
    #[serde(default)]
    pub covers: Coverage,
    /// What it may grow from; `None`: it was read by a version that did not tell.
    #[serde(default)]
    pub baseline: Option<Baseline>,
    /// Why the file as it is now was refused. All else is then said of what it held before, which
    /// is still on the list.
    pub kept_old: Option<String>,
    /// Which content it was refused with that needs only to be accepted, by its digest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held: Option<String>,
}

impl FeedReport {
    /// How long ago the file was changed, in nanoseconds; 0 if that is yet to come, or not known.
    #[must_use]
    pub fn age_ns(&self, now: Timestamp) -> u64 {
        let age = self.modified.map(|modified| now.duration_since(modified));
        age.and_then(|age| u64::try_from(age.as_nanos()).ok())
            .unwrap_or(0)
    }

    /// Whether the file was not changed for that many nanoseconds; `None`: it may be of any age.
    #[must_use]
    pub fn is_stale(&self, max_age_ns: Option<u64>, now: Timestamp) -> bool {
        max_age_ns.is_some_and(|max_age_ns| self.age_ns(now) > max_age_ns)
    }

    /// What an operator should know of the file, each on one line that names it.
    #[must_use]
    pub fn warnings(&self) -> Vec<String> {
        let path = self.path.display();
        let mut warnings = Vec::new();
        if let Some(reason) = &self.kept_old {
            warnings.push(format!(
                "{path} {reason}; the list still has what it held before"
            ));
        }
        for bad in &self.first_bad {
            warnings.push(format!("{path}:{}: {}", bad.line, bad.message));
        }
        let more = self.bad.saturating_sub(self.first_bad.len() as u64);
        if more > 0 {
            let more = text::count(more);
            warnings.push(format!("{path}: {more} more entries cannot be read"));
        }
        warnings
    }
}

/// What was read of a feed file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Feed {
    /// Which file, and what came of it.
    pub report: FeedReport,
    /// As few prefixes as have all its addresses, in order.
    pub prefixes: Vec<IpNet>,
}
