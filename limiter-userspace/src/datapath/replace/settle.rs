//! The end of a replacement: what was before is forgotten, or comes back.

use std::mem;

use tracing::warn;

use super::{Previous, sieves::bring_back_counters};
use crate::datapath::{Attachment, Datapath, DatapathError};

impl Datapath {
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
            mut state,
            carried: _,
            programs,
            removed,
            attached,
        } = previous;
        if let Some(state) = &mut state {
            bring_back_counters((state, &manifest), (&self.state, &self.manifest))?;
            // Before anything is judged by it: what was banned or lifted meanwhile stays so.
            let lost = state.follow_reputation(&self.state)?;
            if lost > 0 {
                warn!(
                    lost,
                    "the policy before has less room for bans: limits' bans are lifted first, and \
                     of either those that would end first (bans: {lost})"
                );
            }
        }
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
