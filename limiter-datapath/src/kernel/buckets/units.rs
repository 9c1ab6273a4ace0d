//! The units that buckets count in, as the kernel knows them, and what a number was given up with.

use std::collections::{BTreeMap, HashSet};

use limiter_common::{
    bucket::Updated,
    strategy::Spend,
    table::{self, OrderKind},
    unit::{MAX_UNITS, Unit},
};
use limiter_policy::{config::Store, policy::Units};

use super::{BucketMaps, DatapathError, InMap, Spot, UNITS, bucket_of, error};
use crate::kernel::{grace::wait_for_running_programs, monotonic_now};

impl BucketMaps {
    /// What the numbers of units mean to the kernel.
    pub(in crate::kernel) fn known_units(&self) -> Result<BTreeMap<u32, Unit>, DatapathError> {
        let mut units = BTreeMap::new();
        for number in 0..MAX_UNITS {
            let InMap(unit) = self.units.get(&number, 0).map_err(error(UNITS))?;
            if unit.interval > 0 {
                units.insert(number, unit);
            }
        }
        Ok(units)
    }

    /// Fills the buckets that count in units whose numbers are other ones' in `after`; returns how
    /// many these were. Before the kernel is told what the numbers mean then: in another unit what
    /// was spent may be a thousand times as much, and a full bucket be in debt for days.
    ///
    /// Nobody may count in them any more, neither the policy in force nor one to go back to.
    pub fn clear_taken_over(&self, before: &Units, after: &Units) -> Result<u64, DatapathError> {
        self.clear_units(&after.taken_over_from(before).collect())
    }

    /// Fills the buckets that count in units of these numbers.
    pub(in crate::kernel) fn clear_units(
        &self,
        numbers: &HashSet<u32>,
    ) -> Result<u64, DatapathError> {
        if numbers.is_empty() {
            return Ok(0);
        }
        // Those of a policy that gave way to the one in force.
        wait_for_running_programs()?;
        let spots: Vec<_> = match self.settings.buckets.store {
            Store::Table => {
                let lines = self.in_lines();
                let lines = lines.filter(|(_, name, _)| numbers.contains(&table::unit_of(*name)));
                lines
                    .map(|(line, name, _)| Spot::in_line(line, name))
                    .collect()
            }
            Store::Hash => {
                let elements = self.elements()?.into_iter();
                let units = elements.map(|(key, element)| (key, bucket_of(element).unit));
                let units = units.filter(|(_, unit)| numbers.contains(unit));
                units.map(|(key, unit)| Spot::in_hash(key, unit)).collect()
            }
        };
        let mut cleared = 0;
        for spot in spots {
            let now_ns = monotonic_now();
            let ended = self.order(OrderKind::Clear, &spot, Spend::NONE, now_ns)?;
            match ended.updated {
                Updated::Stored => cleared += 1,
                Updated::Contended => return Err(DatapathError::Contended),
                // It counts in another by now.
                _ => {}
            }
        }
        Ok(cleared)
    }
}
