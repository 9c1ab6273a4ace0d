//! A list's configuration.

use std::path::PathBuf;

use ipnet::IpNet;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::{Bounds, Feed, FeedReport, Format};
use crate::{policy::List, text};

/// A list as it is configured: prefixes, and files with more prefixes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListSource {
    /// Its name.
    pub name: String,
    /// The prefixes in the configuration, in its order.
    pub cidr: Vec<IpNet>,
    /// The feed files.
    pub files: Vec<PathBuf>,
    /// The files' format.
    pub format: Format,
    /// The time without a change until a file is stale, in nanoseconds; `None`: never.
    pub max_age_ns: Option<u64>,
    /// The fate of a stale file's content.
    pub when_stale: WhenStale,
    /// The bounds on the files' content.
    pub bounds: Bounds,
}

impl ListSource {
    /// Returns a list without files.
    #[must_use]
    pub fn of_cidr(name: String, cidr: Vec<IpNet>) -> Self {
        Self {
            name,
            cidr,
            files: Vec::new(),
            format: Format::default(),
            max_age_ns: None,
            when_stale: WhenStale::default(),
            bounds: Bounds::default(),
        }
    }

    /// Returns the list at a time, with the content of its files. Leaves out stale files if configured.
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

    /// Returns warnings about a file of the list, each on one line that names the file.
    #[must_use]
    pub fn warnings(&self, report: &FeedReport, now: Timestamp) -> Vec<String> {
        let mut warnings = report.warnings();
        if let (true, Some(max_age_ns)) = (self.is_stale(report, now), self.max_age_ns) {
            let effect = match self.when_stale {
                WhenStale::Report => "stays on the list",
                WhenStale::Drop => "is no longer on the list",
            };
            warnings.push(format!(
                "{} is stale, unchanged for more than {}; its content {effect}",
                report.path.display(),
                text::period(max_age_ns),
            ));
        }
        warnings
    }

    /// Returns whether a file of the list is older than its maximum age.
    #[must_use]
    pub fn is_stale(&self, report: &FeedReport, now: Timestamp) -> bool {
        report.is_stale(self.max_age_ns, now)
    }
}

/// The fate of a stale file's content.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WhenStale {
    /// It stays on the list, with a warning.
    #[default]
    Report,
    /// It is off the list until the file changes, with a warning.
    Drop,
}

impl WhenStale {
    /// Every value.
    pub const ALL: [Self; 2] = [Self::Report, Self::Drop];

    /// Returns its name in configuration files and output.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Report => "report",
            Self::Drop => "drop",
        }
    }
}
