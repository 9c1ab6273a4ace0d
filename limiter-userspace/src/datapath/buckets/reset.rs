//! Filling many buckets at once.

use limiter_common::{
    bucket::BucketKey,
    limit::LimitId,
    table,
    unit::{KnownUnits as _, Unit},
};

use super::{At, BucketMaps, DatapathError, InMap, bucket_of};
use crate::{config::Store, policy::Units};

impl BucketMaps {
    /// Fills every bucket, or those of one limit, that owes something at the time `now_ns`;
    /// returns how many these were, of which a moving window is one. `units`: those that buckets
    /// count in.
    pub fn reset_all(
        &self,
        limit: Option<LimitId>,
        units: &Units,
        now_ns: u64,
    ) -> Result<u64, DatapathError> {
        let is_meant = |id| limit.is_none_or(|limit| limit == id);
        match self.settings.buckets.store {
            Store::Table => {
                let owing = self.in_lines().filter(|(_, name, state)| {
                    is_meant(table::limit_of(*name))
                        && owes(units, table::unit_of(*name), *state, now_ns)
                });
                // All are found before the first is changed, and stamps go last and only as they
                // were: those of packets that come once the cursor is gone count.
                let (stamps, buckets): (Vec<_>, Vec<_>) =
                    owing.partition(|(_, name, _)| is_of_stamps(units, table::unit_of(*name)));
                let at = At::new(units, now_ns);
                for (line, name, _) in &buckets {
                    self.alter(*line, *name, &at, |_| FULL)?;
                }
                for (line, name, state) in stamps {
                    self.swap(line, name, &at, state, FULL);
                }
                Ok(buckets.len() as u64)
            }
            Store::Hash => self.reset_keys(|key| is_meant(LimitId(key.limit)), units, now_ns),
        }
    }

    /// Fills the buckets of [`Store::Hash`] that are chosen and owe something at the time
    /// `now_ns`; returns how many these were, of which a moving window is one.
    pub fn reset_keys(
        &self,
        chosen: impl Fn(&BucketKey) -> bool,
        units: &Units,
        now_ns: u64,
    ) -> Result<u64, DatapathError> {
        let mut keys = Vec::new();
        let mut elements = Vec::new();
        let mut count = 0;
        for (key, element) in self.elements()? {
            let bucket = bucket_of(element);
            if chosen(&key) && owes(units, bucket.unit, bucket.state, now_ns) {
                keys.push(InMap(key));
                elements.push(InMap([bucket.unit.into(), FULL]));
                count += u64::from(!is_of_stamps(units, bucket.unit));
            }
        }
        self.put(&keys, &elements)?;
        Ok(count)
    }
}

/// The state of a bucket that is full at any time.
const FULL: u64 = 0;

/// Whether a bucket owes something, or nobody knows what.
fn owes(units: &Units, unit: u32, state: u64, now_ns: u64) -> bool {
    let unit = units.unit(unit);
    unit.map_or(state, |unit| unit.owed(now_ns, state)) > 0
}

fn is_of_stamps(units: &Units, unit: u32) -> bool {
    units.unit(unit).is_some_and(Unit::is_of_stamps)
}
