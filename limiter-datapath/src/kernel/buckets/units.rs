//! The units of buckets, as the kernel knows them. Clears the buckets of a unit number before its
//! reuse.

use std::collections::{BTreeMap, HashSet};

use limiter_common::{
    bucket::UpdateOutcome,
    strategy::Spend,
    table::{self, OrderKind},
    unit::{MAX_UNITS, Unit},
};
use limiter_policy::{config::Store, policy::Units};

use super::{BucketMaps, DatapathError, InMap, UNITS, bucket_of, error, location::BucketLocation};
use crate::kernel::{grace::wait_for_running_programs, monotonic_now};

impl BucketMaps {
    /// Reads the unit behind each number in the kernel.
    pub(in crate::kernel) fn read_units(&self) -> Result<BTreeMap<u32, Unit>, DatapathError> {
        let mut units = BTreeMap::new();
        for number in 0..MAX_UNITS {
            let InMap(unit) = self.units.get(&number, 0).map_err(error(UNITS))?;
            if unit.interval > 0 {
                units.insert(number, unit);
            }
        }
        Ok(units)
    }

    /// Fills the buckets of units if their numbers stand for other units in `after`; returns the number of
    /// filled buckets. Call it before the kernel learns the new units: read in another unit, a debt may be
    /// a thousand times as large, and a full bucket may be in debt for days.
    ///
    /// No policy may use the old units any more, neither the policy in force nor the one to revert to.
    pub fn clear_taken_over(&self, before: &Units, after: &Units) -> Result<u64, DatapathError> {
        self.clear_units(&after.taken_over_from(before).collect())
    }

    /// Fills the buckets that count in units with these numbers; returns how many.
    pub(in crate::kernel) fn clear_units(
        &self,
        numbers: &HashSet<u32>,
    ) -> Result<u64, DatapathError> {
        if numbers.is_empty() {
            return Ok(0);
        }
        // Programs of the replaced policy may still be running.
        wait_for_running_programs()?;
        let locations: Vec<_> = match self.settings.buckets.store {
            Store::Table => {
                let lines = self.in_lines();
                let lines = lines
                    .filter(|(_, fingerprint, _)| numbers.contains(&table::unit_of(*fingerprint)));
                lines
                    .map(|(line, fingerprint, _)| BucketLocation::in_line(line, fingerprint))
                    .collect()
            }
            Store::Hash => {
                let elements = self.elements()?.into_iter();
                let units = elements.map(|(key, element)| (key, bucket_of(element).unit));
                let units = units.filter(|(_, unit)| numbers.contains(unit));
                units
                    .map(|(key, unit)| BucketLocation::in_hash(key, unit))
                    .collect()
            }
        };
        let mut cleared = 0;
        for location in locations {
            let now_ns = monotonic_now();
            let ended = self.order(OrderKind::Clear, &location, Spend::NONE, now_ns)?;
            match ended.updated {
                UpdateOutcome::Stored => cleared += 1,
                UpdateOutcome::Contended => return Err(DatapathError::Contended),
                // The bucket counts in another unit now.
                _ => {}
            }
        }
        Ok(cleared)
    }
}
