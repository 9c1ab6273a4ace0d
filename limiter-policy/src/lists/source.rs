//! What a configuration says of a list.

use std::path::PathBuf;

use ipnet::IpNet;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::{Bounds, Feed, FeedReport, Format};
use crate::{policy::List, text};

/// A list as it is configured: its own prefixes, and files that have more of them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListSource {
    /// Its name.
    pub name: String,
    /// The prefixes in the configuration itself, in its order.
    pub cidr: Vec<IpNet>,
    /// The feed files.
    pub files: Vec<PathBuf>,
    /// What the files are written in.
    pub format: Format,
    /// After how many nanoseconds without a change a file is stale; `None`: never.
    pub max_age_ns: Option<u64>,
    /// What becomes of what a stale file holds.
    pub when_stale: WhenStale,
    /// What the files may come to.
    #[serde(default)]
    pub bounds: Bounds,
}

impl ListSource {
    /// The list at a time, with what was read of its files. What a stale file holds is left out
    /// where that is configured.
    #[must_use]
    pub fn list(&self, feeds: &[Feed], now: Timestamp) -> List {
        let mut prefixes = self.cidr.clone();
        for feed in feeds {
            if self.when_stale == WhenStale::Report || !self.is_stale(&feed.report, now) {
                prefixes.extend(&feed.prefixes);
            }
        }
        List::new(self.name.clone(), &prefixes)
    }

    /// What an operator should know of a file of the list, each on one line that names the file.
    #[must_use]
    pub fn warnings(&self, report: &FeedReport, now: Timestamp) -> Vec<String> {
        let mut warnings = report.warnings();
        if let (true, Some(max_age_ns)) = (self.is_stale(report, now), self.max_age_ns) {
            let what = match self.when_stale {
                WhenStale::Report => "is still on the list",
                WhenStale::Drop => "is no longer on the list",
            };
            warnings.push(format!(
                "{} is stale: it was not changed for longer than {}; what it holds {what}",
                report.path.display(),
                text::period(max_age_ns),
            ));
        }
        warnings
    }

    /// Whether a file of the list has not been changed for longer than it may.
    #[must_use]
    pub fn is_stale(&self, report: &FeedReport, now: Timestamp) -> bool {
        report.is_stale(self.max_age_ns, now)
    }
}

/// What becomes of what a stale file holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WhenStale {
    /// It stays in force, and is told of.
    #[default]
    Report,
    /// It is no longer on the list, until the file changes; and that is told of.
    Drop,
}

impl WhenStale {
    /// Each of them.
    pub const ALL: [Self; 2] = [Self::Report, Self::Drop];

    /// Its name in configuration files and output.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Report => "report",
            Self::Drop => "drop",
        }
    }
}
