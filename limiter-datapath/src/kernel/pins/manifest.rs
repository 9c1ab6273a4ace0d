//! What a policy in force is, as it is pinned beside its programs: all that whoever takes it over
//! has to know.

use std::collections::BTreeMap;

use jiff::Timestamp;
use limiter_policy::{
    config::AttachMode,
    lists::{ListRecord, ListStatus},
    policy::{Names, Policy, Units},
};
use serde::{Deserialize, Serialize};

use crate::kernel::Settings;

/// What is in force.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    /// Counts the policies since the pins, or the daemon, are there; 0: there was none yet.
    pub generation: u64,
    /// The generation with which its buckets, counters and offenders began.
    pub state: u64,
    /// When the policy was loaded.
    pub loaded_at: Timestamp,
    /// The interfaces that are to be limited, by name; some may not be there.
    pub interfaces: Vec<String>,
    /// Their numbers, by which their counters and buckets go; also of those that are not there.
    #[serde(default)]
    pub slots: BTreeMap<String, u32>,
    /// How they are attached to.
    pub mode: AttachMode,
    /// What the programs were made from.
    pub settings: Settings,
    /// The policy.
    pub policy: Policy,
    /// Where the addresses of the policy's lists come from.
    #[serde(default)]
    pub lists: Vec<ListRecord>,
    /// Every name that was interned so far.
    pub names: Names,
    /// Every unit that was interned so far.
    pub units: Units,
}

impl Manifest {
    /// Of nothing in force.
    #[must_use]
    pub fn empty(settings: Settings) -> Self {
        Self {
            generation: 0,
            state: 0,
            loaded_at: Timestamp::now(),
            interfaces: Vec::new(),
            slots: BTreeMap::new(),
            mode: AttachMode::default(),
            settings,
            policy: Policy::from(Vec::new()),
            lists: Vec::new(),
            names: Names::default(),
            units: Units::default(),
        }
    }

    /// The name of the interface that a number is kept for.
    #[must_use]
    pub fn name_of_slot(&self, slot: u32) -> Option<&str> {
        let mut slots = self.slots.iter();
        slots
            .find(|(_, found)| **found == slot)
            .map(|(name, _)| name.as_str())
    }

    /// What there is to tell of the lists, as of now.
    #[must_use]
    pub fn list_statuses(&self, now: Timestamp) -> Vec<ListStatus> {
        let lists = self.lists.iter();
        lists.map(|list| list.status(&self.policy, now)).collect()
    }
}
