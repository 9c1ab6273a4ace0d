//! Ends a replacement: forgets the previous policy, or puts it back in force.

use std::mem;

use tracing::warn;

use super::{PreviousPolicy, sieves::bring_back_counters};
use crate::kernel::{
    Attachment, Datapath, DatapathError, Manifest, Pins, handshakes::Handshakes, program::Program,
};

impl Datapath {
    /// Keeps the policy in force and forgets the previous one.
    pub fn settle(&mut self, previous: PreviousPolicy) -> Result<(), DatapathError> {
        Program::retire(previous.programs.into_values());
        self.retained.clear();
        self.let_go(previous.removed)?;
        // Includes the numbers of interfaces that were not attached.
        self.forget_interfaces(previous.manifest.interface_numbers.into_values())?;
        match &self.pins {
            Some(pins) if previous.manifest.generation != self.manifest.generation => {
                pins.remove_policy(previous.manifest.generation)?;
            }
            _ => {}
        }
        if let Some(pins) = &self.pins {
            // No program of another version is in force any more.
            pins.remove_other_versions()?;
            pins.remove_other_shared_maps(Some(self.shared_maps.generation()))?;
        }
        Ok(())
    }

    /// Puts the previous policy back in force, and detaches from interfaces that it was not on.
    pub fn revert(&mut self, previous: PreviousPolicy) -> Result<(), DatapathError> {
        let PreviousPolicy {
            manifest,
            policy,
            mut shared_maps,
            migrated: _,
            programs,
            handshakes,
            removed,
            attached,
        } = previous;
        if let Some(shared_maps) = &mut shared_maps {
            bring_back_counters(
                (shared_maps, &manifest),
                (&self.shared_maps, &self.manifest),
            )?;
            // Before the previous policy decides on packets, so that it knows the bans made or
            // lifted meanwhile.
            let lost = shared_maps.follow_reputation(&self.shared_maps)?;
            if lost > 0 {
                warn!(
                    lost,
                    "the previous policy has less room for bans: lifted automatic bans before \
                     manual ones, and those that end first (bans: {lost})"
                );
            }
        }
        // Shares may have been leased meanwhile.
        let back_in_force = shared_maps.as_ref().unwrap_or(&self.shared_maps);
        back_in_force.forget_parts(&manifest.policy, None)?;
        self.put_back(programs)?;
        drop(self.handshakes.switch(handshakes, self.pins.as_ref()));
        let is_added = |found: &mut Attachment| !attached.contains_key(&found.link.id());
        let added = self.attachments.extract_if(.., is_added).collect();
        self.attachments.extend(removed);
        self.retained.clear();
        for attachment in &mut self.attachments {
            if let Some(name) = attached.get(&attachment.link.id()) {
                attachment.set_interface(name.clone());
            }
        }
        let reverted = mem::replace(&mut self.manifest, manifest);
        self.policy = policy;
        if let Some(shared_maps) = shared_maps {
            self.shared_maps = shared_maps;
        }
        self.shared_maps.set(self.manifest.settings);
        self.learn_units()?;
        // Before the other policy's pins are removed, which hold its names.
        self.forget_limits_of(&reverted)?;
        // From here on it is known which numbers are still in use.
        self.let_go(added)?;
        if let Some(pins) = &self.pins {
            pins.remove_policy(reverted.generation)?;
            pins.remove_other_shared_maps(Some(self.shared_maps.generation()))?;
        }
        Ok(())
    }

    /// Learns the units of the present buckets: after a revert, the policy does not know the units
    /// of later policies.
    pub(super) fn learn_units(&mut self) -> Result<(), DatapathError> {
        let units = self.shared_maps.units(&self.manifest.units)?;
        self.policy.units.clone_from(&units);
        self.manifest.units = units;
        Ok(())
    }

    /// Forgets the limits that only a later policy had. That policy is no longer in force, so their
    /// ids are free again, or belong to earlier limits.
    pub(super) fn forget_limits_of(&mut self, later: &Manifest) -> Result<(), DatapathError> {
        for limit in self.manifest.names.taken_over_from(&later.names) {
            self.shared_maps.forget_limit(limit, &self.policy.units)?;
        }
        Ok(())
    }

    /// The pins and the links if no policy was ever in force; else `self`.
    pub fn without_policy(self: Box<Self>) -> Result<(Pins, Vec<Attachment>), Box<Self>> {
        match *self {
            Self {
                manifest: Manifest { generation: 0, .. },
                pins: Some(pins),
                attachments,
                ..
            } => Ok((pins, attachments)),
            other => Err(Box::new(other)),
        }
    }

    /// Detaches every program and removes every pin.
    pub fn detach(&mut self) -> Result<(), DatapathError> {
        if let Some(pins) = self.pins.take() {
            pins.remove_all()?;
        }
        self.handshakes = Handshakes::NONE;
        Attachment::end(mem::take(&mut self.attachments));
        Ok(())
    }
}
