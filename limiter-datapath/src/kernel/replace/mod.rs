//! Replaces one policy by another. The new policy's programs are made and verified beside the old
//! ones, and then take over their links, each in one step. Until the change is settled, it can be
//! reverted. If the daemon dies after one of these steps, the next daemon recovers as follows:
//!
//! 1. (the new programs are verified) It takes over the old policy.
//! 2. (debts are migrated, new shared maps pinned) It takes over the old policy, and removes the new
//!    maps, which no policy names.
//! 3. (the new programs are pinned, and last the manifest, which makes the policy whole) It takes over
//!    the old policy; the next policy with that number overwrites the new one.
//! 4. (links to new interfaces are made and pinned) It finds two policies, and links that hold the
//!    new one. It goes back to the old policy on the old policy's interfaces.
//! 5. (the links are updated, one by one; if one refuses, the earlier ones are put back; then a
//!    confirmation is awaited, if needed) It goes back to the old policy in the same way.
//! 6. (links of vanished interfaces, the old policy, other shared maps and ABIs are unpinned) It takes
//!    over the new policy if that is the only one left, or goes back: both are whole.
//!
//! Then the next daemon puts its own configuration in force by the same steps.
//!
//! Small numbers name parts of maps that outlive the policies and interfaces that use them:
//!
//! * Unit numbers are reused when all numbers of a kind are taken. Before the kernel learns the new
//!   meaning, each bucket with that unit is filled.
//! * A limit's interned id is reused when all ids are taken, or when its policy was abandoned. The
//!   data under the id (buckets, counters, offenders, arrivals of its sieves) is cleared before the new
//!   programs attach, at a revert, and by the next daemon for later policies that are still pinned.
//! * An interface's number is cleared when the interface is let go, and reused afterwards. The next
//!   daemon clears all numbers without an interface.
//! * The generation of a policy and of its shared maps is reused when the policy was reverted. Its pins
//!   are removed before the next policy's pins are made.
//! * A sieve's region of its arrays is reused when the layout of the sieves changes. It is never
//!   cleared: a policy with another layout gets its own arrays.

mod adopt;
mod links;
mod prepare;
mod settle;
mod sieves;

use std::{collections::BTreeMap, mem};

use limiter_common::packet;
use limiter_policy::policy::CompiledPolicy;

use super::{
    Attachment, Datapath, DatapathError, Manifest, NameChange, RestoreCounts, Settings, SourceMaps,
    handshakes, interface::Interface, log::LogForwarder, pins::Pins, program::Program,
    shared_map_sets::SharedMapSets,
};
use crate::state::SetDebts;

/// A policy with verified programs, not yet in force.
pub struct PreparedPolicy {
    manifest: Manifest,
    policy: CompiledPolicy,
    /// The new sets of maps; all sets if the present ones do not fit.
    shared_maps: SharedMapSets,
    replaces_shared_maps: bool,
    made: Vec<InterfaceProgram>,
    handshakes: handshakes::PolicyProgram,
}

struct InterfaceProgram {
    interface: Interface,
    /// The interface's index when it was attached to, which names its pins.
    pin_index: u32,
    interface_number: u32,
    /// The header at the start of the interface's frames.
    header: packet::Link,
    program: Program,
    forwarding: Option<LogForwarder>,
}

impl PreparedPolicy {
    /// Restores debts from `passed_ns` ago into the new buckets.
    pub fn restore(
        &self,
        sets: &[SetDebts],
        passed_ns: u64,
    ) -> Result<RestoreCounts, DatapathError> {
        let name_of = |interface_number| self.manifest.name_of_interface(interface_number);
        let (shared_maps, units) = (&self.shared_maps, &self.policy.units);
        Datapath::restore_into(shared_maps, units, name_of, sets, passed_ns)
    }

    pub(super) const fn settings(&self) -> Settings {
        self.manifest.settings
    }

    pub(super) const fn policy(&self) -> &CompiledPolicy {
        &self.policy
    }

    /// The source maps if their maps are new; `None`: the present maps stay.
    #[must_use]
    pub const fn source_maps(&self) -> Option<&SourceMaps> {
        self.shared_maps.source_maps()
    }
}

/// The result of [`Datapath::adopt`].
pub enum Adoption {
    /// A policy in force, and the previous one if it was not settled.
    Datapath(Box<Datapath>, Option<Box<PreviousPolicy>>),
    /// No policy that this version can read. There may be links with programs of another version.
    Links(Pins, Vec<Attachment>),
}

/// The previous policy, to be settled or reverted.
pub struct PreviousPolicy {
    manifest: Manifest,
    policy: CompiledPolicy,
    /// The policy's shared maps, if the new policy has others.
    shared_maps: Option<SharedMapSets>,
    /// The outcome for debts, if the buckets are new.
    migrated: Option<RestoreCounts>,
    /// By interface index.
    programs: BTreeMap<u32, Program>,
    handshakes: handshakes::PolicyProgram,
    /// Attachments to interfaces that the new policy does not limit. They stay until the change is
    /// settled.
    removed: Vec<Attachment>,
    /// The names of the attached interfaces, by link id. Other interfaces have only had the new
    /// policy.
    attached: BTreeMap<u32, String>,
}

impl PreviousPolicy {
    /// The previous policy's manifest.
    #[must_use]
    pub const fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// The outcome for debts; `None`: the buckets are the same.
    #[must_use]
    pub const fn migrated(&self) -> Option<RestoreCounts> {
        self.migrated
    }

    /// Whether the attachment is newer than the previous policy.
    #[must_use]
    pub fn is_without(&self, attachment: &Attachment) -> bool {
        !self.attached.contains_key(&attachment.link.id())
    }
}

impl Datapath {
    /// Puts a policy in force on all its interfaces or, with an error, on none. Interfaces that it
    /// does not limit keep the old policy until the change is settled.
    pub fn apply(&mut self, mut prepared: PreparedPolicy) -> Result<PreviousPolicy, DatapathError> {
        // First, because without room for all bans it fails, and then nothing may have changed.
        prepared.shared_maps.migrate_reputation(&self.shared_maps)?;
        for limit in prepared
            .manifest
            .names
            .taken_over_from(&self.manifest.names)
        {
            self.shared_maps.forget_limit(limit, &self.policy.units)?;
        }
        self.shared_maps
            .forget_parts(&prepared.manifest.policy, Some(&self.manifest.policy))?;
        let has_new_buckets = prepared.replaces_shared_maps
            && !self
                .shared_maps
                .fits_buckets(prepared.manifest.settings.buckets);
        let migrated = if has_new_buckets {
            Some(self.migrate_debts(|owed, passed_ns| prepared.restore(owed, passed_ns))?)
        } else {
            None
        };
        self.migrate_sieves(&mut prepared)?;
        let PreparedPolicy {
            manifest,
            policy,
            shared_maps,
            replaces_shared_maps,
            made,
            handshakes,
        } = prepared;
        let generation = manifest.generation;
        if let Some(pins) = &self.pins {
            if replaces_shared_maps {
                // These are left from an interrupted replacement.
                pins.remove_other_shared_maps(Some(self.shared_maps.generation()))?;
            }
            shared_maps.pin(pins)?;
            if self.manifest.generation == 0 {
                // A daemon that adopts a first policy can then tell that it was not settled.
                pins.add_policy(&self.manifest, [], None)?;
            }
            let programs = made.iter().map(|made| (made.pin_index, &made.program));
            let handshakes = handshakes.as_ref().ok().and_then(Option::as_ref);
            pins.add_policy(&manifest, programs, handshakes)?;
        }
        let attached = names_by_link(&self.attachments);
        let switched = self.switch(made, &manifest);
        let switched = match switched {
            Ok(switched) => switched,
            Err(error) => {
                // Forget the policy that was in force for a moment; its pins are never used.
                let _ = self.learn_units();
                let _ = self.forget_limits_of(&manifest);
                if let Some(pins) = &self.pins {
                    let _ = match self.manifest.generation {
                        0 => pins.remove_this_version(),
                        _ => pins.remove_policy(generation),
                    };
                    let _ = pins.remove_other_shared_maps(Some(self.shared_maps.generation()));
                }
                return Err(error);
            }
        };
        let removed = switched.removed.iter();
        self.retained = removed.map(|found| found.interface_number).collect();
        let handshakes = self.handshakes.switch(handshakes, self.pins.as_ref());
        let shared_maps = if replaces_shared_maps {
            Some(mem::replace(&mut self.shared_maps, shared_maps))
        } else {
            self.shared_maps.extend(shared_maps);
            self.shared_maps.set(manifest.settings);
            None
        };
        let old_manifest = mem::replace(&mut self.manifest, manifest);
        let old_policy = mem::replace(&mut self.policy, policy);
        let migrated = match (migrated, &shared_maps) {
            (Some(migrated), Some(old)) => {
                let (new, units) = (&self.shared_maps, &self.policy.units);
                let name_of = |interface_number| self.interface_name(interface_number);
                Some(migrated.finish(old, &old_policy.units, |sets| {
                    Self::restore_into(new, units, name_of, sets, 0)
                })?)
            }
            _ => None,
        };
        Ok(PreviousPolicy {
            manifest: old_manifest,
            policy: old_policy,
            shared_maps,
            migrated,
            programs: switched.programs,
            handshakes,
            removed: switched.removed,
            attached,
        })
    }

    /// Attaches the programs of [`Self::prepare_more`], unless another policy has come into force
    /// since. Returns the former interfaces of the same names, which have lost the program.
    pub fn attach_more(
        &mut self,
        prepared: PreparedPolicy,
    ) -> Result<Vec<NameChange>, DatapathError> {
        let PreparedPolicy {
            shared_maps,
            made,
            manifest,
            ..
        } = prepared;
        let mut formers = Vec::new();
        if manifest.generation != self.manifest.generation {
            return Ok(formers);
        }
        if let Some(pins) = &self.pins {
            shared_maps.pin(pins)?;
        }
        self.shared_maps.extend(shared_maps);
        self.make_way(&made)?;
        for made in made {
            if let Some(pins) = &self.pins {
                pins.add_program(manifest.generation, made.pin_index, &made.program)?;
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
