//! The programs of a policy, made and verified.

use limiter_common::counters::MAX_INTERFACES;

use super::{Made, Prepared};
use crate::{
    config::AttachMode,
    datapath::{
        Attachment, Clocking, Datapath, DatapathError, Instance, LogLevel, Manifest,
        ReputationMaps, Settings, interface::Interface, log, maps::SharedMaps,
        named::NamedMaps as _, shared::SharedDirectory, state::State,
    },
    policy::CompiledPolicy,
};

impl Datapath {
    /// Makes and verifies the programs of a policy for these interfaces. Changes nothing, but that
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
        let mut slots: Vec<_> = Vec::with_capacity(interfaces.len());
        for interface in interfaces {
            let slot = self.slot_for(interface, &slots)?;
            slots.push(slot);
            let made = self.make(&mut prepared, interface, slot)?;
            prepared.made.push(made);
        }
        Ok(prepared)
    }

    /// Makes and verifies the programs of the policy in force for more interfaces. Changes
    /// nothing.
    pub fn prepare_more(&self, interfaces: &[Interface]) -> Result<Prepared, DatapathError> {
        self.prepare(self.manifest.clone(), self.policy.clone(), interfaces)
    }

    /// A block of counters for an interface: the one it had, or a free one.
    fn slot_for(&self, interface: &Interface, taken: &[u32]) -> Result<u32, DatapathError> {
        let attached = |by: fn(&Attachment, &Interface) -> bool| {
            let found = self.attachments.iter().find(|found| by(found, interface));
            found.map(|found| found.slot)
        };
        let had = attached(|found, interface| found.index == interface.index)
            .or_else(|| attached(|found, interface| found.interface == interface.name));
        let is_free = |slot: &u32| {
            !taken.contains(slot) && self.attachments.iter().all(|found| found.slot != *slot)
        };
        had.filter(|slot| !taken.contains(slot))
            .or_else(|| (0..MAX_INTERFACES).find(is_free))
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
        state.provide(slot, &self.state)?;
        let maps = state.of(slot).or_else(|| self.state.of(slot));
        let maps = maps.ok_or(DatapathError::Missing("maps for an interface"))?;
        let reputation = state.reputation().or_else(|| self.state.reputation());
        let reputation = reputation.ok_or(DatapathError::Missing("maps of reputations"))?;
        let mut instance = prepare_over(maps, reputation, policy, slot, settings)?;
        let forwarding = match settings.log {
            LogLevel::Off => None,
            LogLevel::Verdicts => Some(log::forward(&mut instance, &interface.name)?),
        };
        instance.verify()?;
        Ok(Made {
            interface: interface.clone(),
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
