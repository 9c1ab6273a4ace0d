//! The description of a policy in force, pinned beside its programs: all that a process needs to take
//! the policy over.

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

/// The description of the policy in force.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    /// Counts the policies since the pins, or the daemon, began; 0: no policy yet.
    pub generation: u64,
    /// The generation with which the present buckets, counters and offenders began.
    #[serde(rename = "kept")]
    pub maps_generation: u64,
    /// The time of loading the policy.
    pub loaded_at: Timestamp,
    /// The interfaces to be limited, as the operator wrote them; some may not exist.
    pub interfaces: Vec<InterfaceName>,
    /// The interface numbers, which index counters and buckets. Includes named interfaces that do not
    /// exist.
    pub interface_numbers: BTreeMap<String, u32>,
    /// The mode in which programs are attached.
    pub mode: AttachMode,
    /// The settings that the programs were made from.
    pub settings: Settings,
    /// The policy.
    pub policy: Policy,
    /// The origin of the addresses in the policy's lists.
    pub lists: Vec<ListRecord>,
    /// Every name interned so far.
    pub names: Names,
    /// Every unit interned so far.
    pub units: Units,
}

impl Manifest {
    /// Describes the absence of a policy at the time `now`.
    #[must_use]
    pub fn empty(settings: Settings, now: Timestamp) -> Self {
        Self {
            generation: 0,
            maps_generation: 0,
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

    /// Whether the policy names an interface. Such an interface is limited whenever it exists, and not
    /// only as long as a pattern selects it.
    #[must_use]
    pub fn names(&self, interface: &str) -> bool {
        is_named(&self.interfaces, interface)
    }

    /// The name of the interface with a reserved number.
    #[must_use]
    pub fn name_of_interface(&self, interface_number: u32) -> Option<&str> {
        let mut interface_numbers = self.interface_numbers.iter();
        interface_numbers
            .find(|(_, found)| **found == interface_number)
            .map(|(name, _)| name.as_str())
    }

    /// The status of the lists at the time `now`.
    #[must_use]
    pub fn list_statuses(&self, now: Timestamp) -> Vec<ListStatus> {
        let lists = self.lists.iter();
        lists.map(|list| list.status(&self.policy, now)).collect()
    }
}
