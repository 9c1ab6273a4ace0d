//! The links to the interfaces: made, pinned, given other programs, and let go.

use std::{collections::BTreeMap, mem};

use limiter_common::counters::MAX_INTERFACES;

use super::Made;
use crate::{
    config::Scope,
    datapath::{Attachment, Datapath, DatapathError, Manifest, program::Program},
};

/// What a switch has left.
pub(super) struct Switched {
    pub(super) programs: BTreeMap<u32, Program>,
    pub(super) removed: Vec<Attachment>,
}

impl Datapath {
    /// Keeps attachments that are pinned, in the places of those to interfaces of the same names
    /// that have vanished.
    pub(super) fn keep(&mut self, attachments: Vec<Attachment>) -> Result<(), DatapathError> {
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
    pub(super) fn pin(&self, attachments: &[Attachment]) -> Result<(), DatapathError> {
        let Some(pins) = &self.pins else {
            return Ok(());
        };
        for attachment in attachments {
            let pinned = attachment
                .facts()
                .and_then(|facts| pins.add_interface(attachment.index, &facts, &attachment.link));
            if let Err(error) = pinned {
                self.unpin(attachments)?;
                return Err(error.into());
            }
        }
        Ok(())
    }

    pub(super) fn unpin(&self, attachments: &[Attachment]) -> Result<(), DatapathError> {
        if let Some(pins) = &self.pins {
            for attachment in attachments {
                pins.remove_interface(attachment.index)?;
                pins.remove_program(self.manifest.generation, attachment.index)?;
            }
        }
        Ok(())
    }

    /// Puts the programs in force, or none.
    pub(super) fn switch(
        &mut self,
        made: Vec<Made>,
        manifest: &Manifest,
    ) -> Result<Switched, DatapathError> {
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
    pub(super) fn put_back(
        &mut self,
        mut programs: BTreeMap<u32, Program>,
    ) -> Result<(), DatapathError> {
        for attachment in &mut self.attachments {
            if let Some(program) = programs.remove(&attachment.index) {
                attachment.replace(program)?;
            }
        }
        Ok(())
    }

    /// Forgets what was left of interfaces that are not attached to any more: who detached them was
    /// killed before it was gone, and others may get their slots.
    pub(super) fn forget_free_slots(&mut self) -> Result<(), DatapathError> {
        let taken: Vec<_> = self.attachments.iter().map(|found| found.slot).collect();
        let free = (0..MAX_INTERFACES).filter(|slot| !taken.contains(slot));
        let free: Vec<_> = match self.settings().buckets.scope {
            Scope::Host => free.collect(),
            Scope::Interface => {
                let there = self.state.slots();
                free.filter(|slot| there.contains(slot)).collect()
            }
        };
        for slot in free {
            self.reset_interface(slot)?;
            self.state.forget(slot, self.pins.as_ref())?;
        }
        Ok(())
    }

    /// Detaches, and forgets what was counted for the interfaces, and what they owe.
    pub(super) fn let_go(&mut self, attachments: Vec<Attachment>) -> Result<(), DatapathError> {
        self.unpin(&attachments)?;
        let slots: Vec<_> = attachments.iter().map(|found| found.slot).collect();
        // From here on nothing is counted for them any more.
        drop(attachments);
        for slot in slots {
            self.reset_interface(slot)?;
            self.state.forget(slot, self.pins.as_ref())?;
        }
        Ok(())
    }
}
