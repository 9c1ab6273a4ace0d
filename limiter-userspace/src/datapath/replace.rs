//! One policy replaces another: the programs of the new one are made and verified beside those of
//! the old, and then take over their links, each in one step. Until that is settled, it can be
//! reverted.

use std::{
    collections::{BTreeMap, BTreeSet},
    mem,
};

use limiter_common::counters::MAX_INTERFACES;

use super::{
    Attachment, Clocking, Datapath, DatapathError, Instance, LogLevel, Manifest, Restored,
    interface::Interface,
    log::{self, Forwarding},
    maps::SharedMaps,
    pins::{PinnedPolicy, Pins},
    program::Program,
    shared::SharedDirectory,
    state::State,
};
use crate::{config::AttachMode, policy::CompiledPolicy, state::SetDebts};

/// A policy whose programs are verified; nothing of it is in force.
pub struct Prepared {
    manifest: Manifest,
    policy: CompiledPolicy,
    /// The sets of maps that are not there yet; all of them where the present ones do not fit.
    state: State,
    replaces_state: bool,
    made: Vec<Made>,
}

/// A program for an interface.
struct Made {
    interface: Interface,
    slot: u32,
    program: Program,
    forwarding: Option<Forwarding>,
}

impl Prepared {
    /// Puts back what buckets owed `passed_ns` before, into those that are new.
    pub fn restore(&self, sets: &[SetDebts], passed_ns: u64) -> Result<Restored, DatapathError> {
        let name_of = |slot| {
            let mut made = self.made.iter();
            let made = made.find(|made| made.slot == slot);
            made.map(|made| made.interface.name.as_str())
        };
        let (state, units) = (&self.state, &self.policy.units);
        Datapath::restore_into(state, units, name_of, sets, passed_ns)
    }
}

/// What was found pinned.
pub enum Adopted {
    /// A policy in force; and the one before it, if it was not settled.
    Datapath(Datapath, Option<Previous>),
    /// No policy that this version can read. There may be links, whose programs another version
    /// has made.
    Links(Pins, Vec<Attachment>),
}

/// What was in force before: to be settled or reverted.
pub struct Previous {
    manifest: Manifest,
    policy: CompiledPolicy,
    /// Where the new policy has another.
    state: Option<State>,
    /// What has become of what buckets owed, where there are new ones.
    carried: Option<Restored>,
    /// By the interfaces' indices.
    programs: BTreeMap<u32, Program>,
    /// From interfaces that are not to be limited any more. Until it is settled, they are.
    removed: Vec<Attachment>,
    /// The indices of the interfaces that were attached to; others have only had the new policy.
    attached: BTreeSet<u32>,
}

impl Previous {
    /// What was in force before.
    #[must_use]
    pub const fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// What has become of what buckets owed; `None`: they are the same ones.
    #[must_use]
    pub const fn carried(&self) -> Option<Restored> {
        self.carried
    }

    /// Whether that attachment was not there before.
    #[must_use]
    pub fn lacked(&self, attachment: &Attachment) -> bool {
        !self.attached.contains(&attachment.index)
    }
}

impl Datapath {
    /// Takes over what is pinned; also, where the policy in force was not settled, the one before
    /// it.
    pub fn adopt(pins: Pins) -> Result<Adopted, DatapathError> {
        let mut policies = pins.policies()?;
        let interfaces = pins.interfaces()?;
        let held: Vec<_> = interfaces
            .iter()
            .filter_map(|interface| Some(interface.link.info().ok()?.program))
            .collect();
        let in_force = policies.iter().rposition(|policy| {
            let mut programs = policy.programs.values();
            programs.any(|program| held.contains(&program.id()))
        });
        // Where no interface is left, the newest.
        let Some(place) = in_force.or_else(|| policies.len().checked_sub(1)) else {
            let interfaces = interfaces.into_iter();
            let attachments = interfaces.map(|found| Attachment::of_pinned(found, None));
            let attachments = attachments.collect();
            return Ok(Adopted::Links(pins, attachments));
        };
        let PinnedPolicy {
            manifest,
            mut programs,
        } = policies.swap_remove(place);
        let state = State::open(&pins, &manifest)?;
        let mut before = policies
            .into_iter()
            .find(|policy| policy.manifest.generation < manifest.generation);
        let attachments: Vec<_> = interfaces
            .into_iter()
            .map(|interface| {
                let index = interface.index;
                // A change of the policy may have been cut short between two interfaces.
                let of = |programs: &mut BTreeMap<u32, Program>| {
                    let program = programs.remove(&index)?;
                    held.contains(&program.id()).then_some(program)
                };
                let program = of(&mut programs).or_else(|| of(&mut before.as_mut()?.programs));
                Attachment::of_pinned(interface, program)
            })
            .collect();
        let previous = match before {
            Some(PinnedPolicy {
                manifest: before,
                programs,
            }) => Some(Previous {
                policy: CompiledPolicy::with_units(&before.policy, &before.units)?,
                state: (before.state != manifest.state)
                    .then(|| State::open(&pins, &before))
                    .transpose()?,
                manifest: before,
                carried: None,
                programs,
                removed: Vec::new(),
                attached: indices(&attachments),
            }),
            None => None,
        };
        let datapath = Self {
            policy: CompiledPolicy::with_units(&manifest.policy, &manifest.units)?,
            manifest,
            state,
            attachments,
            pins: Some(pins),
        };
        Ok(Adopted::Datapath(datapath, previous))
    }

    /// Makes and verifies the programs of a policy for these interfaces. Changes nothing.
    pub fn prepare(
        &self,
        manifest: Manifest,
        policy: CompiledPolicy,
        interfaces: &[Interface],
    ) -> Result<Prepared, DatapathError> {
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
        let mut instance = prepare_over(maps, policy, slot, settings, Clocking::Kernel)?;
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

    /// Puts a policy in force: on all its interfaces, or, with an error, on none. Interfaces that
    /// it does not have keep the old one until that is settled.
    pub fn apply(&mut self, prepared: Prepared) -> Result<Previous, DatapathError> {
        for limit in prepared
            .manifest
            .names
            .taken_over_from(&self.manifest.names)
        {
            self.state.forget_limit(limit, &self.policy.units)?;
        }
        let carried = if self.state.fits_buckets(prepared.manifest.settings.buckets) {
            None
        } else {
            Some(self.carry(|owed, passed_ns| prepared.restore(owed, passed_ns))?)
        };
        let Prepared {
            manifest,
            policy,
            state,
            replaces_state,
            made,
        } = prepared;
        let generation = manifest.generation;
        if let Some(pins) = &self.pins {
            if replaces_state {
                // Of another that was cut short.
                pins.remove_other_states(Some(self.state.generation()))?;
            }
            state.pin(pins)?;
            if self.manifest.generation == 0 {
                // So that whoever adopts a first policy that was not settled knows that it was not.
                pins.add_policy(&self.manifest, [])?;
            }
            let programs = made
                .iter()
                .map(|made| (made.interface.index, &made.program));
            pins.add_policy(&manifest, programs)?;
        }
        let attached = indices(&self.attachments);
        let switched = self.switch(made, &manifest);
        let switched = match (switched, &self.pins) {
            (Err(error), Some(pins)) => {
                // What is left of it is never used.
                let _ = match self.manifest.generation {
                    0 => pins.remove_this_version(),
                    _ => pins.remove_policy(generation),
                };
                let _ = pins.remove_other_states(Some(self.state.generation()));
                return Err(error);
            }
            (switched, _) => switched?,
        };
        let state = if replaces_state {
            Some(mem::replace(&mut self.state, state))
        } else {
            self.state.extend(state);
            self.state.set(manifest.settings);
            None
        };
        let old_manifest = mem::replace(&mut self.manifest, manifest);
        let old_policy = mem::replace(&mut self.policy, policy);
        let carried = match (carried, &state) {
            (Some(carried), Some(old)) => {
                let (new, units) = (&self.state, &self.policy.units);
                let name_of = |slot| self.interface_name(slot);
                Some(carried.finish(old, &old_policy.units, |sets| {
                    Self::restore_into(new, units, name_of, sets, 0)
                })?)
            }
            _ => None,
        };
        Ok(Previous {
            manifest: old_manifest,
            policy: old_policy,
            state,
            carried,
            programs: switched.programs,
            removed: switched.removed,
            attached,
        })
    }

    /// Makes and verifies the programs of the policy in force for more interfaces. Changes
    /// nothing.
    pub fn prepare_more(&self, interfaces: &[Interface]) -> Result<Prepared, DatapathError> {
        self.prepare(self.manifest.clone(), self.policy.clone(), interfaces)
    }

    /// Attaches what [`Self::prepare_more`] has made, unless another policy is in force by now.
    pub fn attach_more(&mut self, prepared: Prepared) -> Result<(), DatapathError> {
        let Prepared {
            state,
            made,
            manifest,
            ..
        } = prepared;
        if manifest.generation != self.manifest.generation {
            return Ok(());
        }
        if let Some(pins) = &self.pins {
            state.pin(pins)?;
        }
        self.state.extend(state);
        for made in made {
            if let Some(pins) = &self.pins {
                let index = made.interface.index;
                pins.add_program(manifest.generation, index, &made.program)?;
            }
            let attachments = vec![made.attach(manifest.mode)?];
            self.pin(&attachments)?;
            self.keep(attachments)?;
        }
        Ok(())
    }

    /// Keeps attachments that are pinned, in the places of those to interfaces of the same names
    /// that have vanished.
    fn keep(&mut self, attachments: Vec<Attachment>) -> Result<(), DatapathError> {
        for attachment in attachments {
            let name = &attachment.interface;
            let place = self
                .attachments
                .iter()
                .position(|found| found.interface == *name);
            match place {
                Some(place) => {
                    let vanished = mem::replace(&mut self.attachments[place], attachment);
                    self.unpin(&[vanished])?;
                }
                None => self.attachments.push(attachment),
            }
        }
        Ok(())
    }

    /// Pins attachments, or none of them.
    fn pin(&self, attachments: &[Attachment]) -> Result<(), DatapathError> {
        let Some(pins) = &self.pins else {
            return Ok(());
        };
        for attachment in attachments {
            let facts = attachment.facts();
            if let Err(error) = pins.add_interface(attachment.index, &facts, &attachment.link) {
                self.unpin(attachments)?;
                return Err(error.into());
            }
        }
        Ok(())
    }

    fn unpin(&self, attachments: &[Attachment]) -> Result<(), DatapathError> {
        if let Some(pins) = &self.pins {
            for attachment in attachments {
                pins.remove_interface(attachment.index)?;
                pins.remove_program(self.manifest.generation, attachment.index)?;
            }
        }
        Ok(())
    }

    /// Puts the programs in force, or none.
    fn switch(&mut self, made: Vec<Made>, manifest: &Manifest) -> Result<Switched, DatapathError> {
        // What an interface may refuse comes first.
        let mut successors = BTreeMap::new();
        let mut new = Vec::new();
        for made in made {
            let index = made.interface.index;
            if self.attachments.iter().any(|found| found.index == index) {
                successors.insert(index, made);
            } else {
                new.push(made.attach(manifest.mode)?);
            }
        }
        self.pin(&new)?;
        let is_left = |attachment: &mut Attachment| {
            let is_waited_for =
                !attachment.exists() && manifest.interfaces.contains(&attachment.interface);
            !successors.contains_key(&attachment.index) && !is_waited_for
        };
        let removed: Vec<_> = self.attachments.extract_if(.., is_left).collect();
        let mut programs = BTreeMap::new();
        for place in 0..self.attachments.len() {
            let attachment = &mut self.attachments[place];
            let Some(made) = successors.remove(&attachment.index) else {
                continue;
            };
            match attachment.replace(made.program) {
                Ok(old) => {
                    attachment.forwarding = made.forwarding;
                    programs.extend(old.map(|old| (attachment.index, old)));
                }
                Err(error) => {
                    self.put_back(programs)?;
                    self.attachments.extend(removed);
                    self.unpin(&new)?;
                    return Err(error);
                }
            }
        }
        self.keep(new)?;
        Ok(Switched { programs, removed })
    }

    /// Puts older programs in force again.
    fn put_back(&mut self, mut programs: BTreeMap<u32, Program>) -> Result<(), DatapathError> {
        for attachment in &mut self.attachments {
            if let Some(program) = programs.remove(&attachment.index) {
                attachment.replace(program)?;
            }
        }
        Ok(())
    }

    /// Detaches, and forgets what was counted for the interfaces.
    fn let_go(&mut self, attachments: Vec<Attachment>) -> Result<(), DatapathError> {
        self.unpin(&attachments)?;
        let slots: Vec<_> = attachments.iter().map(|found| found.slot).collect();
        // From here on nothing is counted for them any more.
        drop(attachments);
        slots
            .into_iter()
            .try_for_each(|slot| self.state.forget(slot, self.pins.as_ref()))
    }

    /// The policy in force stays: what was before is forgotten.
    pub fn settle(&mut self, previous: Previous) -> Result<(), DatapathError> {
        self.let_go(previous.removed)?;
        match &self.pins {
            Some(pins) if previous.manifest.generation != self.manifest.generation => {
                pins.remove_policy(previous.manifest.generation)?;
            }
            _ => {}
        }
        if let Some(pins) = &self.pins {
            // Nothing of it is in force any more.
            pins.remove_other_versions()?;
            pins.remove_other_states(Some(self.state.generation()))?;
        }
        Ok(())
    }

    /// Puts what was before in force again. Interfaces that it was not on are detached.
    pub fn revert(&mut self, previous: Previous) -> Result<(), DatapathError> {
        let Previous {
            manifest,
            policy,
            state,
            carried: _,
            programs,
            removed,
            attached,
        } = previous;
        self.put_back(programs)?;
        let is_added = |found: &mut Attachment| !attached.contains(&found.index);
        let detached = self.attachments.extract_if(.., is_added).collect();
        self.let_go(detached)?;
        self.attachments.extend(removed);
        let reverted = mem::replace(&mut self.manifest, manifest);
        self.policy = policy;
        if let Some(state) = state {
            self.state = state;
        }
        self.state.set(self.manifest.settings);
        if let Some(pins) = &self.pins {
            pins.remove_policy(reverted.generation)?;
            pins.remove_other_states(Some(self.state.generation()))?;
        }
        Ok(())
    }

    /// Detaches every program and removes every pin.
    pub fn detach(&mut self) -> Result<(), DatapathError> {
        if let Some(pins) = self.pins.take() {
            pins.remove_all()?;
        }
        self.attachments.clear();
        Ok(())
    }
}

/// What a switch has left.
struct Switched {
    programs: BTreeMap<u32, Program>,
    removed: Vec<Attachment>,
}

fn indices(attachments: &[Attachment]) -> BTreeSet<u32> {
    attachments.iter().map(|found| found.index).collect()
}

impl Made {
    fn attach(self, mode: AttachMode) -> Result<Attachment, DatapathError> {
        Ok(Attachment {
            forwarding: self.forwarding,
            ..Attachment::new(self.program, &self.interface, self.slot, mode)?
        })
    }
}

/// Makes an instance, still to be verified, over maps that are there.
pub(super) fn prepare_over(
    maps: &SharedMaps,
    policy: &CompiledPolicy,
    slot: u32,
    settings: super::Settings,
    clocking: Clocking,
) -> Result<Instance, DatapathError> {
    let directory = SharedDirectory::new()?;
    maps.pin(directory.path())?;
    let (object, shared) = (settings.log.object(), Some(directory.path()));
    Instance::prepare(object, policy, slot, settings, clocking, shared)
}
