//! Replaces one policy with another: the new policy's programs are made and verified beside the old
//! ones, and then take over their links, each in one step. Until that is settled, it can be
//! reverted. If the daemon dies after a step, the next one
//!
//! 1. (the new programs are verified) takes over the old policy;
//! 2. (debts are carried over, new kept maps pinned) does the same; the maps, which no policy
//!    names, go;
//! 3. (the new programs are pinned, and last the manifest, which makes the policy whole) does the
//!    same; the next policy of that number overwrites it;
//! 4. (links to new interfaces are made and pinned) finds two policies, of which links hold the new
//!    one: it goes back to the old one on its interfaces;
//! 5. (the links are updated, one by one; if one refuses, those before it are put back; then a
//!    confirmation is awaited, if needed) does the same;
//! 6. (links of interfaces that have gone, the old policy, other kept maps and ABIs are unpinned)
//!    takes over the new one if it is alone, or goes back: both are whole.
//!
//! Then it puts its own configuration in force likewise.
//!
//! Small numbers name parts of maps that outlive their owner:
//!
//! * A unit's is given again when all of a kind are given; before the kernel learns its new
//!   meaning, each bucket in it is filled.
//! * A limit's interned id is given again when all are given, or its policy was given up. What it
//!   names (buckets, counters, offenders, arrivals of its sieves) is cleared before the new
//!   programs attach; at a revert; and by the next daemon, for later policies still pinned.
//! * An interface's is given again when the interface was let go, and cleared then; by the next
//!   daemon, all without an interface are.
//! * That of a policy and of its kept maps is given again when the policy was reverted; its pins go
//!   before the next one's are made.
//! * A sieve's region of its arrays is given again when the sieves are laid out otherwise, and
//!   never cleared: such a policy gets its own arrays.

mod adopt;
mod links;
mod prepare;
mod settle;
mod sieves;

use std::{collections::BTreeMap, mem};

use limiter_policy::policy::CompiledPolicy;

use super::{
    Attachment, Datapath, DatapathError, Manifest, NameChange, ReputationMaps, Restored, Settings,
    handshakes, instance::Device, interface::Interface, kept::KeptMaps, log::Forwarding,
    pins::Pins, program::Program,
};
use crate::state::SetDebts;

/// A policy with verified programs; none of it is in force.
pub struct Prepared {
    manifest: Manifest,
    policy: CompiledPolicy,
    /// The sets of maps that are new; all of them if the present ones do not fit.
    kept: KeptMaps,
    replaces_kept: bool,
    made: Vec<Made>,
    handshakes: handshakes::OfPolicy,
}

/// A program for an interface.
struct Made {
    interface: Interface,
    device: Device,
    program: Program,
    forwarding: Option<Forwarding>,
}

impl Prepared {
    /// Restores what buckets owed `passed_ns` ago into the new buckets.
    pub fn restore(&self, sets: &[SetDebts], passed_ns: u64) -> Result<Restored, DatapathError> {
        let name_of = |interface_number| self.manifest.name_of_interface(interface_number);
        let (kept, units) = (&self.kept, &self.policy.units);
        Datapath::restore_into(kept, units, name_of, sets, passed_ns)
    }

    /// Returns the settings of its instances.
    pub(super) const fn settings(&self) -> Settings {
        self.manifest.settings
    }

    /// Returns the compiled policy.
    pub(super) const fn policy(&self) -> &CompiledPolicy {
        &self.policy
    }

    /// Returns the reputations if their maps are new; `None`: the present ones stay.
    #[must_use]
    pub const fn reputation(&self) -> Option<&ReputationMaps> {
        self.kept.reputation()
    }
}

/// The result of [`Datapath::adopt`].
pub enum Adopted {
    /// A policy in force, and the previous one if it was not settled.
    Datapath(Box<Datapath>, Option<Box<Previous>>),
    /// No policy that this version can read. There may be links with programs of another version.
    Links(Pins, Vec<Attachment>),
}

/// The previous policy, to be settled or reverted.
pub struct Previous {
    manifest: Manifest,
    policy: CompiledPolicy,
    /// Its kept maps, if the new policy has others.
    kept: Option<KeptMaps>,
    /// The outcome for debts, if the buckets are new.
    carried: Option<Restored>,
    /// By interface index.
    programs: BTreeMap<u32, Program>,
    handshakes: handshakes::OfPolicy,
    /// Attachments to interfaces that the new policy does not limit. They stay until that is
    /// settled.
    removed: Vec<Attachment>,
    /// The names of the interfaces that were attached to, by link id; other interfaces have only
    /// had the new policy.
    attached: BTreeMap<u32, String>,
}

impl Previous {
    /// Returns the previous policy's manifest.
    #[must_use]
    pub const fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// Returns the outcome for debts; `None`: the buckets are the same.
    #[must_use]
    pub const fn carried(&self) -> Option<Restored> {
        self.carried
    }

    /// Whether that attachment did not exist before.
    #[must_use]
    pub fn lacked(&self, attachment: &Attachment) -> bool {
        !self.attached.contains_key(&attachment.link.id())
    }
}

impl Datapath {
    /// Puts a policy in force on all its interfaces or, with an error, on none. Interfaces that it
    /// does not limit keep the old one until that is settled.
    pub fn apply(&mut self, mut prepared: Prepared) -> Result<Previous, DatapathError> {
        // First, because there may be no room for all bans, and then nothing changes.
        prepared.kept.carry_reputation(&self.kept)?;
        for limit in prepared
            .manifest
            .names
            .taken_over_from(&self.manifest.names)
        {
            self.kept.forget_limit(limit, &self.policy.units)?;
        }
        self.kept
            .forget_parts(&prepared.manifest.policy, Some(&self.manifest.policy))?;
        let has_new_buckets =
            prepared.replaces_kept && !self.kept.fits_buckets(prepared.manifest.settings.buckets);
        let carried = if has_new_buckets {
            Some(self.carry(|owed, passed_ns| prepared.restore(owed, passed_ns))?)
        } else {
            None
        };
        self.carry_sieves(&mut prepared)?;
        let Prepared {
            manifest,
            policy,
            kept,
            replaces_kept,
            made,
            handshakes,
        } = prepared;
        let generation = manifest.generation;
        if let Some(pins) = &self.pins {
            if replaces_kept {
                // Left by an interrupted replacement.
                pins.remove_other_kept(Some(self.kept.generation()))?;
            }
            kept.pin(pins)?;
            if self.manifest.generation == 0 {
                // So that a daemon that adopts a first policy can tell that it was not settled.
                pins.add_policy(&self.manifest, [], None)?;
            }
            let programs = made
                .iter()
                .map(|made| (made.interface.index, &made.program));
            let handshakes = handshakes.as_ref().ok().and_then(Option::as_ref);
            pins.add_policy(&manifest, programs, handshakes)?;
        }
        let attached = names_by_link(&self.attachments);
        let switched = self.switch(made, &manifest);
        let switched = match switched {
            Ok(switched) => switched,
            Err(error) => {
                // Forget what was in force for a moment; its pins are never used.
                let _ = self.learn_units();
                let _ = self.forget_limits_of(&manifest);
                if let Some(pins) = &self.pins {
                    let _ = match self.manifest.generation {
                        0 => pins.remove_this_version(),
                        _ => pins.remove_policy(generation),
                    };
                    let _ = pins.remove_other_kept(Some(self.kept.generation()));
                }
                return Err(error);
            }
        };
        let removed = switched.removed.iter();
        self.held = removed.map(|found| found.interface_number).collect();
        let handshakes = self.handshakes.switch(handshakes, self.pins.as_ref());
        let kept = if replaces_kept {
            Some(mem::replace(&mut self.kept, kept))
        } else {
            self.kept.extend(kept);
            self.kept.set(manifest.settings);
            None
        };
        let old_manifest = mem::replace(&mut self.manifest, manifest);
        let old_policy = mem::replace(&mut self.policy, policy);
        let carried = match (carried, &kept) {
            (Some(carried), Some(old)) => {
                let (new, units) = (&self.kept, &self.policy.units);
                let name_of = |interface_number| self.interface_name(interface_number);
                Some(carried.finish(old, &old_policy.units, |sets| {
                    Self::restore_into(new, units, name_of, sets, 0)
                })?)
            }
            _ => None,
        };
        Ok(Previous {
            manifest: old_manifest,
            policy: old_policy,
            kept,
            carried,
            programs: switched.programs,
            handshakes,
            removed: switched.removed,
            attached,
        })
    }

    /// Attaches what [`Self::prepare_more`] has made, unless another policy is in force by now.
    /// Returns the former interfaces of the same names, from which the program has gone.
    pub fn attach_more(&mut self, prepared: Prepared) -> Result<Vec<NameChange>, DatapathError> {
        let Prepared {
            kept,
            made,
            manifest,
            ..
        } = prepared;
        let mut formers = Vec::new();
        if manifest.generation != self.manifest.generation {
            return Ok(formers);
        }
        if let Some(pins) = &self.pins {
            kept.pin(pins)?;
        }
        self.kept.extend(kept);
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
