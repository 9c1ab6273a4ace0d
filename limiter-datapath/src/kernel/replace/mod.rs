//! One policy replaces another: the programs of the new one are made and verified beside those of
//! the old, and then take over their links, each in one step. Until that is settled, it can be
//! reverted.

mod adopt;
mod links;
mod prepare;
mod settle;
mod sieves;

use std::{collections::BTreeMap, mem};

use limiter_policy::policy::CompiledPolicy;

use super::{
    Attachment, Datapath, DatapathError, Manifest, Noticed, ReputationMaps, Restored,
    interface::Interface, log::Forwarding, pins::Pins, program::Program, state::State,
};
use crate::state::SetDebts;

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
        let name_of = |slot| self.manifest.name_of_slot(slot);
        let (state, units) = (&self.state, &self.policy.units);
        Datapath::restore_into(state, units, name_of, sets, passed_ns)
    }

    /// What is known of sources, where that is new; `None`: it goes on.
    #[must_use]
    pub const fn reputation(&self) -> Option<&ReputationMaps> {
        self.state.reputation()
    }
}

/// What was found pinned.
pub enum Adopted {
    /// A policy in force; and the one before it, if it was not settled.
    Datapath(Box<Datapath>, Option<Box<Previous>>),
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
    /// The names of the interfaces that were attached to, by the numbers of their links; others have
    /// only had the new policy.
    attached: BTreeMap<u32, String>,
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
        !self.attached.contains_key(&attachment.link.id())
    }
}

impl Datapath {
    /// Puts a policy in force: on all its interfaces, or, with an error, on none. Interfaces that
    /// it does not have keep the old one until that is settled.
    pub fn apply(&mut self, mut prepared: Prepared) -> Result<Previous, DatapathError> {
        // First: there may be no room for all bans, and then nothing changes.
        prepared.state.carry_reputation(&self.state)?;
        for limit in prepared
            .manifest
            .names
            .taken_over_from(&self.manifest.names)
        {
            self.state.forget_limit(limit, &self.policy.units)?;
        }
        let has_new_buckets =
            prepared.replaces_state && !self.state.fits_buckets(prepared.manifest.settings.buckets);
        let carried = if has_new_buckets {
            Some(self.carry(|owed, passed_ns| prepared.restore(owed, passed_ns))?)
        } else {
            None
        };
        self.carry_sieves(&mut prepared)?;
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
        let attached = names_by_link(&self.attachments);
        let switched = self.switch(made, &manifest);
        let switched = match switched {
            Ok(switched) => switched,
            Err(error) => {
                // What of it was in force for a moment is forgotten, and its pins are never used.
                let _ = self.learn_units();
                let _ = self.forget_limits_of(&manifest);
                if let Some(pins) = &self.pins {
                    let _ = match self.manifest.generation {
                        0 => pins.remove_this_version(),
                        _ => pins.remove_policy(generation),
                    };
                    let _ = pins.remove_other_states(Some(self.state.generation()));
                }
                return Err(error);
            }
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

    /// Attaches what [`Self::prepare_more`] has made, unless another policy is in force by now; tells
    /// from which interfaces the program has gone, because these have their names.
    pub fn attach_more(&mut self, prepared: Prepared) -> Result<Vec<Noticed>, DatapathError> {
        let Prepared {
            state,
            made,
            manifest,
            ..
        } = prepared;
        let mut formers = Vec::new();
        if manifest.generation != self.manifest.generation {
            return Ok(formers);
        }
        if let Some(pins) = &self.pins {
            state.pin(pins)?;
        }
        self.state.extend(state);
        self.make_way(&made)?;
        for made in made {
            if let Some(pins) = &self.pins {
                let index = made.interface.index;
                pins.add_program(manifest.generation, index, &made.program)?;
            }
            let attachments = vec![made.attach(manifest.mode)?];
            self.pin(&attachments)?;
            formers.extend(self.keep(attachments)?);
        }
        Ok(formers)
    }
}

fn names_by_link(attachments: &[Attachment]) -> BTreeMap<u32, String> {
    let attachments = attachments.iter();
    attachments
        .map(|found| (found.link.id(), found.interface.clone()))
        .collect()
}
