//! The record of a list in force: enough to read its files again, and to report on it without a daemon.

use std::path::Path;

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use super::{
    Baseline, Coverage, Feed, FeedReport, FeedStatus, Feeds, ListSource, ListState, ListStatus,
    WhenStale,
};
use crate::policy::{List, Policy};

/// A list, and the reports of its files.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListRecord {
    /// Its configuration.
    pub source: ListSource,
    /// The report of each of its files, in the order of the configuration.
    pub files: Vec<FeedReport>,
}

impl ListRecord {
    /// Returns the records of these lists.
    #[must_use]
    pub fn all(sources: &[ListSource], feeds: &Feeds) -> Vec<Self> {
        let sources = sources.iter();
        sources
            .map(|source| {
                let feeds = feeds.get(&source.name).into_iter().flatten();
                Self {
                    source: source.clone(),
                    files: feeds.map(|feed| feed.report.clone()).collect(),
                }
            })
            .collect()
    }

    /// Returns the state of one of its files.
    #[must_use]
    pub fn state_of(&self, file: &FeedReport, now: Timestamp) -> ListState {
        match self.source.when_stale {
            WhenStale::Drop if self.source.is_stale(file, now) => ListState::Dropped,
            WhenStale::Report if self.source.is_stale(file, now) => ListState::Stale,
            _ if file.kept_old.is_some() => ListState::Old,
            _ => ListState::Ok,
        }
    }

    /// Returns the time when the next of its files becomes stale; `None`: never.
    #[must_use]
    pub fn next_stale(&self, now: Timestamp) -> Option<Timestamp> {
        let max_age = SignedDuration::from_nanos(self.source.max_age_ns?.try_into().ok()?);
        let fresh = self
            .files
            .iter()
            .filter(|file| !self.source.is_stale(file, now));
        fresh
            .filter_map(|file| file.modified?.checked_add(max_age).ok())
            .min()
    }

    /// Returns a stand-in for the unknown content of a file: all prefixes of the list.
    #[must_use]
    pub fn stand_in(&self, path: &Path, list: Option<&List>) -> Feed {
        let known = self.files.iter().find(|file| file.path == path);
        let prefixes = list.map_or_else(Vec::new, |list| list.prefixes.clone());
        let covers = Coverage::of(&prefixes);
        Feed {
            report: known.cloned().unwrap_or_else(|| FeedReport {
                path: path.to_owned(),
                format: self.source.format,
                entries: 0,
                bad: 0,
                first_bad: Vec::new(),
                modified: None,
                prefixes: 0,
                covers,
                baseline: Baseline {
                    covers,
                    since: Timestamp::UNIX_EPOCH,
                },
                kept_old: None,
                deferred: None,
            }),
            prefixes,
        }
    }

    /// Returns its status at this time, with its prefixes in the policy.
    #[must_use]
    pub fn status(&self, policy: &Policy, now: Timestamp) -> ListStatus {
        let name = &self.source.name;
        let prefixes = policy.list(name).map_or(&[][..], |list| &list.prefixes);
        let ipv4 = prefixes.partition_point(|prefix| prefix.addr().is_ipv4());
        let files: Vec<FeedStatus> = self
            .files
            .iter()
            .map(|file| FeedStatus {
                age_ns: file.modified.map(|_| file.age_ns(now)),
                state: self.state_of(file, now),
                report: file.clone(),
            })
            .collect();
        ListStatus {
            list: name.clone(),
            ipv4_prefixes: ipv4 as u64,
            ipv6_prefixes: (prefixes.len() - ipv4) as u64,
            used_by: policy.uses_of(name),
            age_ns: files.iter().filter_map(|file| file.age_ns).max(),
            max_age_ns: self.source.max_age_ns,
            bad_lines: self.files.iter().map(|file| file.bad).sum(),
            state: files
                .iter()
                .map(|file| file.state)
                .max()
                .unwrap_or(ListState::Ok),
            files,
        }
    }
}

#[cfg(test)]
mod tests;
