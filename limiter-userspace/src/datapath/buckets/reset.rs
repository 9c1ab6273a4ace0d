//! Filling many buckets at once.

use limiter_common::{
    bucket::BucketKey, limit::LimitId, strategy::Spend, table, unit::KnownUnits as _,
};

use super::{At, BucketMaps, DatapathError, InMap, bucket_of};
use crate::{config::Store, policy::Units};

impl BucketMaps {
    /// Fills every bucket, or those of one limit, that owes something at the time `now_ns`;
    /// returns how many these were. `units`: those that buckets count in.
    pub fn reset_all(
        &self,
        limit: Option<LimitId>,
        units: &Units,
        now_ns: u64,
    ) -> Result<u64, DatapathError> {
        let is_meant = |id| limit.is_none_or(|limit| limit == id);
        match self.settings.buckets.store {
            Store::Table => {
                let at = At::new(units, now_ns);
                let mut count = 0;
                for (line, name, state) in self.in_lines() {
                    let now = now_in(units, table::unit_of(name), now_ns);
                    if is_meant(table::limit_of(name)) && state > now {
                        self.refund(line, name, &Spend::unbounded(now, u64::MAX), &at)?;
                        count += 1;
                    }
                }
                Ok(count)
            }
            Store::Hash => self.reset_keys(|key| is_meant(LimitId(key.limit)), units, now_ns),
        }
    }

    /// Fills the buckets of [`Store::Hash`] that are chosen and owe something at the time
    /// `now_ns`; returns how many these were.
    pub fn reset_keys(
        &self,
        chosen: impl Fn(&BucketKey) -> bool,
        units: &Units,
        now_ns: u64,
    ) -> Result<u64, DatapathError> {
        let mut keys = Vec::new();
        let mut elements = Vec::new();
        for (key, element) in self.elements()? {
            let bucket = bucket_of(element);
            if chosen(&key) && bucket.state > now_in(units, bucket.unit, now_ns) {
                keys.push(InMap(key));
                elements.push(InMap([bucket.unit.into(), FULL]));
            }
        }
        self.put(&keys, &elements)?;
        Ok(keys.len() as u64)
    }
}

/// The state of a bucket that is full at any time.
const FULL: u64 = 0;

/// The time in the ticks of the unit of that number.
fn now_in(units: &Units, unit: u32, now_ns: u64) -> u64 {
    units.unit(unit).map_or(0, |unit| unit.ticks(now_ns))
}
