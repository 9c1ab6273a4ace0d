//! Changes of the policy: what became of them.

use std::fmt;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// What a reload has put in force.
#[derive(Debug, Serialize, Deserialize)]
pub struct Reloaded {
    /// The number of the policy.
    pub generation: u64,
    /// How many limits it has.
    pub limits: usize,
    /// How many overrides they have.
    pub overrides: usize,
    /// The limits that have another strategy than before, and so begin anew.
    #[serde(default)]
    pub begun_anew: Vec<String>,
    /// The interfaces that are not there.
    pub waiting_for: Vec<String>,
    /// What is in the configuration and takes a restart.
    pub after_restart: Vec<SettingDiff>,
    /// In how many nanoseconds it is reverted, unless it is confirmed.
    pub confirm_within_ns: Option<u64>,
}

/// The reloads since the daemon runs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct History {
    /// How many put a policy in force.
    pub succeeded: u64,
    /// How many changed nothing, because of an error.
    pub failed: u64,
    /// The last one.
    pub last: Option<LastReload>,
    /// In how many nanoseconds the policy in force is reverted, unless it is confirmed.
    pub unconfirmed_for_ns: Option<u64>,
}

/// The last reload.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LastReload {
    /// When.
    pub at: Timestamp,
    /// Why it changed nothing; `None`: it put a policy in force.
    pub error: Option<String>,
}

/// A setting that the daemon has otherwise.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SettingDiff {
    /// Its section in the configuration.
    pub setting: String,
    /// What the daemon does.
    pub old: String,
    /// What the configuration says.
    pub new: String,
}

impl fmt::Display for SettingDiff {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { setting, old, new } = self;
        write!(formatter, "{setting:10}  {old} → {new}")
    }
}
