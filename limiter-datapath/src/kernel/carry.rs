//! Carries debts over to new buckets when their maps change size, kind or number. Debts made
//! meanwhile are added once the new buckets are in use.

use limiter_policy::policy::Units;

use super::{Datapath, DatapathError, Restored, kept::KeptMaps, monotonic_now};
use crate::state::SetDebts;

/// The debts carried over before the new buckets were in use.
pub(super) struct Carried {
    owed: Vec<SetDebts>,
    at_ns: u64,
    restored: Restored,
}

impl Datapath {
    /// Captures what the buckets in use owe, and has `restore` put it into new ones; `restore` is
    /// also given the nanoseconds since the capture.
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

    /// Restores what buckets owed `passed_ns` ago into the buckets of kept maps. `name_of` returns the
    /// interface of an interface number.
    pub(super) fn restore_into<'n>(
        kept: &KeptMaps,
        units: &Units,
        name_of: impl Fn(u32) -> Option<&'n str>,
        sets: &[SetDebts],
        passed_ns: u64,
    ) -> Result<Restored, DatapathError> {
        let now = monotonic_now();
        let mut all = Restored::default();
        for (interface_number, maps) in kept.by_interface() {
            let interface = interface_number.and_then(&name_of);
            // If each interface has its own buckets now and they shared them before, each gets all
            // that was owed; and vice versa.
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
    /// Adds what was spent since from the old buckets, which are no longer in use. `units`: those
    /// that they count in. Returns what has become of all that was owed.
    pub(super) fn finish(
        self,
        old: &KeptMaps,
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
