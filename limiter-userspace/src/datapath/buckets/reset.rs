//! Filling many buckets at once.

use limiter_common::{bucket::BucketKey, gcra::Spend, limit::LimitId, table};

use super::{BUCKETS, BucketMaps, DatapathError, InMap, error, hash};
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
        match self.settings.buckets.store {
            Store::Table => {
                let mut count = 0;
                for (line, name, state) in self.in_lines() {
                    let unit = units.get(table::unit_of(name));
                    let now = unit.map_or(0, |unit| unit.ticks(now_ns));
                    if limit.is_none_or(|limit| limit == table::limit_of(name)) && state > now {
                        self.give_back_in_line(line, name, &Spend::unbounded(now, u64::MAX))?;
                        count += 1;
                    }
                }
                Ok(count)
            }
            Store::Hash => self.reset_keys(|key| limit.is_none_or(|limit| limit.0 == key.limit)),
        }
    }

    /// Fills the buckets of [`Store::Hash`] that are of some owners and limits; returns how many
    /// these were.
    pub fn reset_keys(&self, chosen: impl Fn(&BucketKey) -> bool) -> Result<u64, DatapathError> {
        let entries = hash::read(&self.hash).map_err(error(BUCKETS))?;
        let keys: Vec<_> = entries
            .into_iter()
            .filter(|(key, state)| *state != FULL && chosen(key))
            .map(|(key, _)| InMap(key))
            .collect();
        self.put(&keys, &vec![InMap(FULL); keys.len()])?;
        Ok(keys.len() as u64)
    }
}

/// The state of a bucket that is full at any time.
const FULL: u64 = 0;
