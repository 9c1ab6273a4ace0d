//! Buckets whose maps are to be of another size, kind or number: what they owe is carried over to
//! the new ones, and what was spent meanwhile is added when these are in use.

use limiter_policy::policy::Units;

use super::{Datapath, DatapathError, Restored, monotonic_now, state::State};
use crate::state::SetDebts;

/// What was carried over before the new buckets were in use.
pub(super) struct Carried {
    owed: Vec<SetDebts>,
    at_ns: u64,
    restored: Restored,
}

impl Datapath {
    /// Has `restore` put what the buckets in use owed so many nanoseconds ago into new ones.
    pub(super) fn carry(
        &self,
        restore: impl FnOnce(&[SetDebts], u64) -> Result<Restored, DatapathError>,
    ) -> Result<Carried, DatapathError> {
        let at_ns = monotonic_now();
        let owed = self.capture_at(at_ns)?;
        let restored = restore(&owed, monotonic_now().saturating_sub(at_ns))?;
        Ok(Carried {
            owed,
            at_ns,
            restored,
        })
    }

    /// Puts back what buckets owed `passed_ns` before, into those of a state. `name_of` tells the
    /// interface of a slot.
    pub(super) fn restore_into<'n>(
        state: &State,
        units: &Units,
        name_of: impl Fn(u32) -> Option<&'n str>,
        sets: &[SetDebts],
        passed_ns: u64,
    ) -> Result<Restored, DatapathError> {
        let now = monotonic_now();
        let mut all = Restored::default();
        for (slot, maps) in state.by_slot() {
            let interface = slot.and_then(&name_of);
            // Where each interface has buckets of its own now and had not before, its have all
            // that was owed; and the other way round.
            let are_for = |set: &&SetDebts| match (&set.interface, interface) {
                (Some(owed_on), Some(interface)) => owed_on == interface,
                _ => true,
            };
            for set in sets.iter().filter(are_for) {
                all += maps.buckets().restore(&set.debts, units, now, passed_ns)?;
            }
        }
        Ok(all)
    }
}

impl Carried {
    /// Adds what was spent from the old buckets since; they are not in use any more. `units`: those
    /// that they count in. Returns what has become of all that was owed.
    pub(super) fn finish(
        self,
        old: &State,
        units: &Units,
        restore: impl FnOnce(&[SetDebts]) -> Result<Restored, DatapathError>,
    ) -> Result<Restored, DatapathError> {
        let now = monotonic_now();
        let mut sets = self.owed;
        for (set, maps) in sets.iter_mut().zip(old.sets()) {
            let owed = maps.buckets().capture(units, now)?;
            set.debts = owed.since(&set.debts, now.saturating_sub(self.at_ns));
        }
        let mut all = self.restored;
        all.lost += restore(&sets)?.lost;
        Ok(all)
    }
}
