//! The links to the interfaces: makes, pins and releases them, and gives them other programs.

use std::{collections::BTreeMap, mem};

use limiter_common::counters::MAX_INTERFACES;
use limiter_policy::config::Scope;

use super::InterfaceProgram;
use crate::kernel::{Attachment, Datapath, DatapathError, Manifest, NameChange, program::Program};

/// The replaced programs and the removed attachments after a switch.
pub(super) struct ReplacedPrograms {
    pub(super) programs: BTreeMap<u32, Program>,
    pub(super) removed: Vec<Attachment>,
}

impl Datapath {
    /// Keeps pinned attachments. They replace the attachments to former interfaces of the same
    /// names, which lose the program. Returns the former interfaces that have not vanished.
    pub(super) fn keep(
        &mut self,
        attachments: Vec<Attachment>,
    ) -> Result<Vec<NameChange>, DatapathError> {
        let mut formers = Vec::new();
        for attachment in attachments {
            let name = &attachment.interface;
            let index = self
                .attachments
                .iter()
                .position(|found| found.interface == *name);
            match index {
                Some(index) => {
                    let former = mem::replace(&mut self.attachments[index], attachment);
                    formers.extend(former.exists().then(|| former.name_change()));
                    self.unpin(&[former])?;
                }
                None => self.attachments.push(attachment),
            }
        }
        Ok(formers)
    }

    /// Pins all attachments, or on an error none.
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

    /// Releases attachments at the indices of the interfaces in `made`, because pins are named by index.
    /// The former interfaces have vanished, or have moved to another network namespace.
    pub(super) fn make_way(&mut self, made: &[InterfaceProgram]) -> Result<(), DatapathError> {
        let is_in_the_way = |found: &mut Attachment| {
            let mut made = made.iter();
            made.any(|made| made.pin_index == found.index && !found.is_on(&made.interface))
        };
        let in_the_way: Vec<_> = self.attachments.extract_if(.., is_in_the_way).collect();
        self.unpin(&in_the_way)
    }

    /// Removes the pins of attachments, unless other attachments have the same pins now.
    pub(super) fn unpin(&self, attachments: &[Attachment]) -> Result<(), DatapathError> {
        if let Some(pins) = &self.pins {
            for attachment in attachments {
                let has_its_pins = |other: &Attachment| {
                    other.index == attachment.index && other.link.id() != attachment.link.id()
                };
                if self.attachments.iter().any(has_its_pins) {
                    continue;
                }
                pins.remove_interface(attachment.index)?;
                pins.remove_program(self.manifest.generation, attachment.index)?;
            }
        }
        Ok(())
    }

    /// Puts all programs in force, or none.
    pub(super) fn switch(
        &mut self,
        made: Vec<InterfaceProgram>,
        manifest: &Manifest,
    ) -> Result<ReplacedPrograms, DatapathError> {
        self.make_way(&made)?;
        // Attach first: an interface may refuse it.
        let mut successors = BTreeMap::new();
        let mut new = Vec::new();
        for made in made {
            let mut attachments = self.attachments.iter();
            match attachments.find(|found| found.is_on(&made.interface)) {
                Some(found) => drop(successors.insert(found.link.id(), made)),
                None => new.push(made.attach(manifest.mode)?),
            }
        }
        self.pin(&new)?;
        let is_left = |attachment: &mut Attachment| {
            let is_waited_for = !attachment.exists() && manifest.names(&attachment.interface);
            !successors.contains_key(&attachment.link.id()) && !is_waited_for
        };
        let removed: Vec<_> = self.attachments.extract_if(.., is_left).collect();
        let mut programs = BTreeMap::new();
        let mut names = Vec::new();
        for index in 0..self.attachments.len() {
            let attachment = &mut self.attachments[index];
            let Some(made) = successors.remove(&attachment.link.id()) else {
                continue;
            };
            let program = made.program;
            let suited = attachment.suit(&program, &made.interface);
            match suited.and_then(|()| attachment.replace(program)) {
                Ok(old) => {
                    attachment.forwarding = made.forwarding;
                    names.push((index, made.interface.name));
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
        for (index, name) in names {
            self.attachments[index].set_interface(name);
        }
        self.keep(new)?;
        Ok(ReplacedPrograms { programs, removed })
    }

    /// Puts the older programs back in force.
    pub(super) fn put_back(
        &mut self,
        mut programs: BTreeMap<u32, Program>,
    ) -> Result<(), DatapathError> {
        let mut replaced = Vec::new();
        for attachment in &mut self.attachments {
            if let Some(program) = programs.remove(&attachment.index) {
                replaced.extend(attachment.replace(program)?);
            }
        }
        Program::retire(replaced);
        Ok(())
    }

    /// Detaches, and clears the interfaces' counters and debts.
    pub(in crate::kernel) fn let_go(
        &mut self,
        attachments: Vec<Attachment>,
    ) -> Result<(), DatapathError> {
        self.unpin(&attachments)?;
        let interface_numbers: Vec<_> = attachments
            .iter()
            .map(|found| found.interface_number)
            .collect();
        // From here on no packet counts for them.
        Attachment::end(attachments);
        self.forget_interfaces(interface_numbers)
    }

    /// Clears the counters and debts of interfaces that are no longer attached: a killed daemon may
    /// have left them, and other interfaces may get the numbers.
    pub(super) fn forget_unused_interfaces(&mut self) -> Result<(), DatapathError> {
        match self.settings().buckets.scope {
            Scope::Host => self.forget_interfaces(0..MAX_INTERFACES),
            Scope::Interface => self.forget_interfaces(self.shared_maps.interface_numbers()),
        }
    }

    /// Clears the counters and debts of unused `interface_numbers`: no attached interface has the
    /// number, and no missing interface waits for it.
    pub(in crate::kernel) fn forget_interfaces(
        &mut self,
        interface_numbers: impl IntoIterator<Item = u32>,
    ) -> Result<(), DatapathError> {
        for interface_number in interface_numbers {
            let mut attachments = self.attachments.iter();
            if !self.retained.contains(&interface_number)
                && self.manifest.name_of_interface(interface_number).is_none()
                && attachments.all(|found| found.interface_number != interface_number)
            {
                self.reset_interface(interface_number)?;
                self.shared_maps
                    .forget(interface_number, self.pins.as_ref())?;
            }
        }
        Ok(())
    }
}
