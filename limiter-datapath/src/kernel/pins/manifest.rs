//! The description of a policy in force, pinned beside its programs: all that a process needs to
//! take it over.

use std::collections::BTreeMap;

use jiff::Timestamp;
use limiter_policy::{
    config::AttachMode,
    interface::{InterfaceName, is_named},
    lists::{ListRecord, ListStatus},
    policy::{Names, Policy, Units},
};
use serde::{Deserialize, Serialize};

use crate::kernel::Settings;

/// The description of what is in force.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    /// Counts the policies since the pins, or the daemon, began; 0: none yet.
    pub generation: u64,
    /// The generation with which its buckets, counters and offenders began.
    pub kept: u64,
    /// When the policy was loaded.
    pub loaded_at: Timestamp,
    /// The interfaces that are to be limited, as the operator wrote them; some may not exist.
    pub interfaces: Vec<InterfaceName>,
    /// Their numbers, by which they find counters and buckets; also those of named interfaces that do
    /// not exist.
    pub interface_numbers: BTreeMap<String, u32>,
    /// How programs are attached to them.
    pub mode: AttachMode,
    /// The settings that the programs were made from.
    pub settings: Settings,
    /// The policy.
    pub policy: Policy,
    /// Where the addresses of the policy's lists come from.
    pub lists: Vec<ListRecord>,
    /// Every name interned so far.
    pub names: Names,
    /// Every unit interned so far.
    pub units: Units,
}

impl Manifest {
    /// Describes nothing in force, `now`.
    #[must_use]
    pub fn empty(settings: Settings, now: Timestamp) -> Self {
        Self {
            generation: 0,
            kept: 0,
            loaded_at: now,
            interfaces: Vec::new(),
            interface_numbers: BTreeMap::new(),
            mode: AttachMode::default(),
            settings,
            policy: Policy::from(Vec::new()),
            lists: Vec::new(),
            names: Names::default(),
            units: Units::default(),
        }
    }

    /// Whether an interface is to be limited by its name, whether or not it exists, and not only as long
    /// as a pattern selects it.
    #[must_use]
    pub fn names(&self, interface: &str) -> bool {
        is_named(&self.interfaces, interface)
    }

    /// Returns the name of the interface that a number is reserved for.
    #[must_use]
    pub fn name_of_interface(&self, interface_number: u32) -> Option<&str> {
        let mut interface_numbers = self.interface_numbers.iter();
        interface_numbers
            .find(|(_, found)| **found == interface_number)
            .map(|(name, _)| name.as_str())
    }

    /// Returns the status of the lists, as of now.
    #[must_use]
    pub fn list_statuses(&self, now: Timestamp) -> Vec<ListStatus> {
        let lists = self.lists.iter();
        lists.map(|list| list.status(&self.policy, now)).collect()
    }
}
