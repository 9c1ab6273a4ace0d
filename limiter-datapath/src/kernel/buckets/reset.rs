//! Filling many buckets at once.

use limiter_common::{
    limit::LimitId,
    owner::BucketKey,
    table,
    unit::{KnownUnits as _, Unit},
};
use limiter_policy::{config::Store, policy::Units};

use super::{At, BucketMaps, DatapathError, Spot, bucket_of, lines::FULL};

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
                // Nobody knows what a locked bucket owes.
                self.free_abandoned_locks()?;
                let buckets = self.in_lines();
                let buckets = buckets.filter(|(_, name, _)| is_meant(table::limit_of(*name)));
                let buckets = buckets.map(|(line, name, state)| {
                    (Spot::in_line(line, name), table::unit_of(name), state)
                });
                self.fill(buckets, units, now_ns)
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
        let buckets = self.elements()?.into_iter();
        let buckets = buckets.filter(|(key, _)| chosen(key));
        let buckets = buckets.map(|(key, element)| {
            let bucket = bucket_of(element);
            (Spot::in_hash(key, bucket.unit), bucket.unit, bucket.state)
        });
        self.fill(buckets, units, now_ns)
    }

    /// Fills those of the buckets, told with their units and states, that owe something.
    fn fill(
        &self,
        buckets: impl Iterator<Item = (Spot, u32, u64)>,
        units: &Units,
        now_ns: u64,
    ) -> Result<u64, DatapathError> {
        let at = At { units, now_ns };
        // All are found before the first is changed, and stamps go last and only as they were: those
        // of packets that come once the cursor is gone count.
        let (stamps, buckets): (Vec<_>, Vec<_>) = buckets
            .filter(|(_, unit, state)| owes(units, *unit, *state, now_ns))
            .partition(|(_, unit, _)| at.is_of_stamps(*unit));
        for (spot, ..) in &buckets {
            self.clear(spot)?;
        }
        for (spot, _, state) in stamps {
            self.swap(&spot, &at, state, FULL)?;
        }
        Ok(buckets.len() as u64)
    }
}

/// Whether a bucket owes something, or nobody knows what.
fn owes(units: &Units, unit: u32, state: u64, now_ns: u64) -> bool {
    let unit: Option<&Unit> = units.unit(unit);
    unit.map_or(state, |unit| unit.owed(now_ns, state)) > 0
}
