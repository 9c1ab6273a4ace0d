//! The programs of a policy, made and verified.

use std::collections::BTreeMap;

use limiter_common::counters::MAX_INTERFACES;
use limiter_policy::{config::AttachMode, policy::CompiledPolicy};

use super::{Made, Prepared};
use crate::kernel::{
    Attachment, Clocking, Datapath, DatapathError, Instance, LogLevel, Manifest, ReputationMaps,
    Settings, interface::Interface, log, maps::SharedMaps, named::NamedMaps as _,
    shared::SharedDirectory, state::State,
};

impl Datapath {
    /// Makes and verifies the programs of a policy for these interfaces, and maps also for those
    /// that are not there yet: what was saved has a place from the start. Changes nothing, but that
    /// buckets are full which count in units that have given up their numbers.
    pub fn prepare(
        &self,
        manifest: Manifest,
        policy: CompiledPolicy,
        interfaces: &[Interface],
    ) -> Result<Prepared, DatapathError> {
        // Before the kernel is told what the numbers mean: from then on they would be misread.
        self.state
            .clear_taken_over(&self.policy.units, &policy.units)?;
        let manifest = Manifest {
            settings: self.sifting(&manifest, &policy),
            ..manifest
        };
        let replaces_state = !self.state.fits(manifest.settings);
        let began_with = if replaces_state {
            manifest.generation
        } else {
            self.state.generation()
        };
        let mut prepared = Prepared {
            replaces_state,
            state: State::new(began_with, manifest.settings),
            manifest: Manifest {
                state: began_with,
                ..manifest
            },
            policy,
            made: Vec::with_capacity(interfaces.len()),
        };
        let slots = self.slots_for(&prepared.manifest.interfaces, interfaces)?;
        for slot in slots.values() {
            prepared.state.provide(*slot, &self.state)?;
        }
        for interface in interfaces {
            let slot = slots.get(&interface.name).copied();
            let slot = slot.ok_or(DatapathError::Missing("number for an interface"))?;
            let made = self.make(&mut prepared, interface, slot)?;
            prepared.made.push(made);
        }
        prepared.manifest.slots = slots;
        Ok(prepared)
    }

    /// Makes and verifies the programs of the policy in force for more interfaces. Changes
    /// nothing.
    pub fn prepare_more(&self, interfaces: &[Interface]) -> Result<Prepared, DatapathError> {
        self.prepare(self.manifest.clone(), self.policy.clone(), interfaces)
    }

    /// The numbers of these interfaces and of those that are only named: those that they had, or
    /// free ones.
    fn slots_for(
        &self,
        names: &[String],
        interfaces: &[Interface],
    ) -> Result<BTreeMap<String, u32>, DatapathError> {
        let mut slots = BTreeMap::new();
        let there = interfaces.iter().map(|found| (&found.name, Some(found)));
        // What is there comes first: its program has a number already.
        for (name, interface) in there.chain(names.iter().map(|name| (name, None))) {
            if !slots.contains_key(name) {
                let slot = self.slot_for(name, interface, &slots)?;
                slots.insert(name.clone(), slot);
            }
        }
        Ok(slots)
    }

    fn slot_for(
        &self,
        name: &str,
        interface: Option<&Interface>,
        taken: &BTreeMap<String, u32>,
    ) -> Result<u32, DatapathError> {
        let is_taken = |slot: &u32| taken.values().any(|taken| taken == slot);
        let attached = |is_meant: &dyn Fn(&Attachment) -> bool| {
            let found = self.attachments.iter().find(|found| is_meant(found));
            found.map(|found| found.slot)
        };
        let is_unused = |slot: &u32| {
            !is_taken(slot) && self.attachments.iter().all(|found| found.slot != *slot)
        };
        let kept = self.manifest.slots.get(name).copied();
        // Nobody else's, as long as there are others.
        let is_free = |slot: &u32| is_unused(slot) && self.manifest.name_of_slot(*slot).is_none();
        attached(&|found| interface.is_some_and(|interface| found.is_on(interface)))
            .or_else(|| attached(&|found| found.interface == name).filter(|slot| !is_taken(slot)))
            .or_else(|| kept.filter(is_unused))
            .or_else(|| (0..MAX_INTERFACES).find(is_free))
            .or_else(|| (0..MAX_INTERFACES).find(is_unused))
            .ok_or(DatapathError::TooManyInterfaces(taken.len() + 1))
    }

    fn make(
        &self,
        prepared: &mut Prepared,
        interface: &Interface,
        slot: u32,
    ) -> Result<Made, DatapathError> {
        let Prepared { state, policy, .. } = prepared;
        let settings = prepared.manifest.settings;
        let maps = state.of(slot).or_else(|| self.state.of(slot));
        let maps = maps.ok_or(DatapathError::NoPolicy)?;
        let reputation = state.reputation().or_else(|| self.state.reputation());
        let reputation = reputation.ok_or(DatapathError::NoPolicy)?;
        let mut instance = prepare_over(maps, reputation, policy, slot, settings)?;
        let forwarding = match settings.log {
            LogLevel::Off => None,
            LogLevel::Verdicts => Some(log::forward(&mut instance, &interface.name)?),
        };
        instance.verify()?;
        // Pins go by the index that it had when it was attached to.
        let mut attachments = self.attachments.iter();
        let attached = attachments.find(|found| found.is_on(interface));
        Ok(Made {
            interface: Interface {
                index: attached.map_or(interface.index, |found| found.index),
                ..interface.clone()
            },
            slot,
            program: instance.into_program()?,
            forwarding,
        })
    }
}

impl Made {
    pub(super) fn attach(self, mode: AttachMode) -> Result<Attachment, DatapathError> {
        Ok(Attachment {
            forwarding: self.forwarding,
            ..Attachment::new(self.program, &self.interface, self.slot, mode)?
        })
    }
}

/// Makes an instance, still to be verified, over maps that are there.
fn prepare_over(
    maps: &SharedMaps,
    reputation: &ReputationMaps,
    policy: &CompiledPolicy,
    slot: u32,
    settings: Settings,
) -> Result<Instance, DatapathError> {
    let directory = SharedDirectory::new()?;
    maps.pin(directory.path())?;
    reputation.pin(directory.path())?;
    let (object, shared) = (settings.log.object(), Some(directory.path()));
    Instance::prepare(object, policy, slot, settings, Clocking::Kernel, shared)
}
