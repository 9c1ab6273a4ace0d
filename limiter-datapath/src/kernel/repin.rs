//! Restores pins that were removed by hand or with their filesystem. The daemon holds every pinned object
//! open, and pins it again. Without a daemon, links of an unpinned policy hold programs without stages: the
//! kernel has emptied the array of stages, and the programs drop every packet.

use std::path::PathBuf;

use super::{Attachment, Datapath, DatapathError, pins::Pins, program::Program};

impl Datapath {
    /// The path of a lost pin of an object in force; `None`: all pins are there, or pinning is off.
    #[must_use]
    pub fn lost_pin(&self) -> Option<PathBuf> {
        let pins = self.pins_in_force()?;
        pins.lost_directory()
            .or_else(|| self.shared_maps.lost_pin(pins))
            .or_else(|| self.lost_set(pins))
            .or_else(|| self.lost_of_policy(pins))
            .or_else(|| {
                let mut pinned = self.pinned_attachments();
                pinned.find_map(|found| pins.lost_interface(found.index, &found.link))
            })
            .or_else(|| pins.lost_handshakes(self.handshakes.link()?))
    }

    /// Makes lost pins again; returns the path of one of them.
    pub fn pin_again(&mut self) -> Result<Option<PathBuf>, DatapathError> {
        let Some(lost) = self.lost_pin() else {
            return Ok(None);
        };
        if let Some(pins) = &mut self.pins {
            pins.take_again()?;
        }
        let Some(pins) = self.pins_in_force() else {
            return Ok(None);
        };
        self.shared_maps.pin_again(pins)?;
        if self.lost_of_policy(pins).is_some() {
            let programs = self
                .pinned_attachments()
                .filter_map(|found| Some((found.index, found.program.as_ref()?)));
            pins.add_policy(&self.manifest, programs, self.handshakes.program())?;
        }
        for found in self.pinned_attachments() {
            if pins.lost_interface(found.index, &found.link).is_some() {
                pins.add_interface(found.index, &found.facts()?, &found.link)?;
            }
        }
        if let Some(link) = self.handshakes.link()
            && pins.lost_handshakes(link).is_some()
        {
            pins.remove_handshakes()?;
            pins.add_handshakes(link)?;
        }
        Ok(Some(lost))
    }

    /// The pins, once a policy is in force.
    fn pins_in_force(&self) -> Option<&Pins> {
        self.pins.as_ref().filter(|_| self.manifest.generation > 0)
    }

    /// The attachments that need pins. Attachments of vanished interfaces have the programs of some earlier
    /// policy.
    fn pinned_attachments(&self) -> impl Iterator<Item = &Attachment> {
        self.attachments.iter().filter(|found| found.exists())
    }

    /// Checks for sets of maps that were not found when the pins were opened.
    fn lost_set(&self, pins: &Pins) -> Option<PathBuf> {
        self.pinned_attachments()
            .find_map(|found| self.shared_maps.lost_set(pins, found.interface_number))
    }

    fn lost_of_policy(&self, pins: &Pins) -> Option<PathBuf> {
        let generation = self.manifest.generation;
        let lost = |found: &Attachment| {
            let program = found.program.as_ref();
            pins.lost_program(generation, found.index, program)
        };
        let handshakes = |program: &Program| pins.lost_handshakes_of(generation, program);
        pins.lost_manifest(generation)
            .or_else(|| self.pinned_attachments().find_map(lost))
            .or_else(|| self.handshakes.program().and_then(handshakes))
    }
}
