//! The results of reloads.

use std::fmt;

use jiff::Timestamp;
use limiter_policy::policy::diff::KnownFate;
use serde::{Deserialize, Serialize};

/// The result of a successful reload.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ReloadResult {
    /// The number of the policy.
    pub generation: u64,
    /// How many limits it has.
    pub limits: usize,
    /// How many overrides they have.
    pub overrides: usize,
    /// The limits with a changed strategy: their buckets start from scratch.
    pub begun_anew: Vec<String>,
    /// The effect on the known sources; `None`: all stay, or there were none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub known_sources: Option<KnownFate>,
    /// The interfaces that do not exist yet.
    pub waiting_for: Vec<String>,
    /// Changed settings that only a restart applies.
    pub after_restart: Vec<SettingDiff>,
    /// Nanoseconds until it is reverted unless it is confirmed.
    pub confirm_within_ns: Option<u64>,
}

/// The reloads since the daemon started.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct History {
    /// How many put a policy in force.
    pub succeeded: u64,
    /// How many failed and changed nothing.
    pub failed: u64,
    /// The last one.
    pub last: Option<LastReload>,
    /// Nanoseconds until the policy in force is reverted unless it is confirmed.
    pub unconfirmed_for_ns: Option<u64>,
    /// The node that leads the rollout of the policy in force; `None`: no node does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pushed_by: Option<String>,
}

impl History {
    /// Returns a phrase with the command that keeps the policy in force, and the policy's origin.
    #[must_use]
    pub fn keeps(&self) -> String {
        self.pushed_by.as_ref().map_or_else(
            || "`limiter confirm`".to_owned(),
            |node| format!("`limiter fleet confirm` (node {node} pushes it)"),
        )
    }
}

/// The last reload.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LastReload {
    /// The time.
    pub at: Timestamp,
    /// Why it changed nothing; `None`: it put a policy in force.
    pub error: Option<String>,
}

/// A setting that differs between the daemon and the configuration.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SettingDiff {
    /// Its section in the configuration.
    pub setting: String,
    /// The daemon's value.
    pub old: String,
    /// The configuration's value.
    pub new: String,
}

impl fmt::Display for SettingDiff {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { setting, old, new } = self;
        write!(formatter, "{setting:10}  {old} → {new}")
    }
}
