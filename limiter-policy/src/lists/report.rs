//! Reports on feed files.

use std::path::PathBuf;

use ipnet::IpNet;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::{
    bounds::Baseline,
    coverage::Coverage,
    feed::{BadLine, Format},
};
use crate::text;

/// The report of reading a feed file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FeedReport {
    /// The file.
    pub path: PathBuf,
    /// Its format.
    pub format: Format,
    /// The number of readable entries.
    pub entries: u64,
    /// The number of unreadable entries.
    pub bad: u64,
    /// The first ten unreadable entries.
    pub first_bad: Vec<BadLine>,
    /// The time of the file's last change; `None`: the system does not know.
    pub modified: Option<Timestamp>,
    /// The number of prefixes, after merging; 0: unknown.
    #[serde(default)] // A manifest of an older limiter does not have it.
    pub prefixes: u64,
    /// The coverage.
    pub covers: Coverage,
    /// The coverage from which its growth is measured.
    pub baseline: Baseline,
    /// The reason for refusing the file's current content. All other fields then describe its previous
    /// content, which stays on the list.
    pub kept_old: Option<String>,
    /// The digest of a refused content that an operator can accept.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[serde(rename = "held")]
    pub deferred: Option<String>,
}

impl FeedReport {
    /// Returns the time since the file's last change, in nanoseconds; 0: in the future, or unknown.
    #[must_use]
    pub fn age_ns(&self, now: Timestamp) -> u64 {
        let age = self.modified.map(|modified| now.duration_since(modified));
        age.and_then(|age| u64::try_from(age.as_nanos()).ok())
            .unwrap_or(0)
    }

    /// Returns whether the file has been unchanged for longer than `max_age_ns`; `None`: any age is fine.
    #[must_use]
    pub fn is_stale(&self, max_age_ns: Option<u64>, now: Timestamp) -> bool {
        max_age_ns.is_some_and(|max_age_ns| self.age_ns(now) > max_age_ns)
    }

    /// Returns warnings about the file, each on one line that names it.
    #[must_use]
    pub fn warnings(&self) -> Vec<String> {
        let path = self.path.display();
        let mut warnings = Vec::new();
        if let Some(reason) = &self.kept_old {
            warnings.push(format!(
                "{path} {reason}; its previous content stays in force"
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

/// The content of a feed file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Feed {
    /// The report on the file.
    pub report: FeedReport,
    /// The smallest set of prefixes with its addresses, sorted.
    pub prefixes: Vec<IpNet>,
}
