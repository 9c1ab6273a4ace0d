//! Migrates debts to new buckets when the maps change size, kind or number. Debts that arise
//! during the change are added once the new buckets are in use.

use limiter_policy::policy::Units;

use super::{
    Datapath, DatapathError, RestoreCounts, monotonic_now, shared_map_sets::SharedMapSets,
};
use crate::state::SetDebts;

/// The debts that were migrated before the new buckets came into use.
pub(super) struct MigratedDebts {
    owed: Vec<SetDebts>,
    at_ns: u64,
    restored: RestoreCounts,
}

impl Datapath {
    /// Captures the debts in the present buckets, and passes them to `restore` with the nanoseconds
    /// since the capture.
    pub(super) fn migrate_debts(
        &self,
        restore: impl FnOnce(&[SetDebts], u64) -> Result<RestoreCounts, DatapathError>,
    ) -> Result<MigratedDebts, DatapathError> {
        let at_ns = monotonic_now();
        let owed = self.capture_at(at_ns)?;
        let restored = restore(&owed, monotonic_now().saturating_sub(at_ns))?;
        Ok(MigratedDebts {
            owed,
            at_ns,
            restored,
        })
    }

    /// Restores debts from `passed_ns` ago into the buckets of `shared_maps`. `name_of` maps an interface
    /// number to the interface's name.
    pub(super) fn restore_into<'n>(
        shared_maps: &SharedMapSets,
        units: &Units,
        name_of: impl Fn(u32) -> Option<&'n str>,
        sets: &[SetDebts],
        passed_ns: u64,
    ) -> Result<RestoreCounts, DatapathError> {
        let now = monotonic_now();
        let mut all = RestoreCounts::default();
        for (interface_number, maps) in shared_maps.by_interface() {
            let interface = interface_number.and_then(&name_of);
            // Scope changes from shared to per interface: each interface gets the whole debt; and vice
            // versa.
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

impl MigratedDebts {
    /// Adds the tokens spent from the old buckets since the capture; the old buckets are no longer in
    /// use. `units`: the units of the old buckets. Returns the outcome for all debts.
    pub(super) fn finish(
        self,
        old: &SharedMapSets,
        units: &Units,
        restore: impl FnOnce(&[SetDebts]) -> Result<RestoreCounts, DatapathError>,
    ) -> Result<RestoreCounts, DatapathError> {
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
