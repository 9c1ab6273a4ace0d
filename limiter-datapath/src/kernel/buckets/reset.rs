//! Fills many buckets at once.

use limiter_common::{
    key::BucketKey,
    limit::LimitId,
    table,
    unit::{Unit, UnitTable as _},
};
use limiter_policy::{config::Store, policy::Units};

use super::{
    BucketMaps, DatapathError, bucket_of,
    lines::{FULL, TimedUnits},
    location::BucketLocation,
};

impl BucketMaps {
    /// Fills every bucket in debt at the time `now_ns`, or only the buckets of one limit; returns
    /// their number. A moving window counts as one bucket. `units`: the units that buckets count
    /// in.
    pub fn reset_all(
        &self,
        limit: Option<LimitId>,
        units: &Units,
        now_ns: u64,
    ) -> Result<u64, DatapathError> {
        let is_meant = |id| limit.is_none_or(|limit| limit == id);
        match self.settings.buckets.store {
            Store::Table => {
                let buckets = self.in_lines();
                let buckets =
                    buckets.filter(|(_, fingerprint, _)| is_meant(table::limit_of(*fingerprint)));
                let buckets = buckets.map(|(line, fingerprint, state)| {
                    (
                        BucketLocation::in_line(line, fingerprint),
                        table::unit_of(fingerprint),
                        state,
                    )
                });
                self.fill(buckets, units, now_ns)
            }
            Store::Hash => self.reset_keys(|key| is_meant(LimitId(key.limit)), units, now_ns),
        }
    }

    /// Fills the chosen buckets of [`Store::Hash`] in debt at the time `now_ns`; returns their
    /// number. A moving window counts as one bucket.
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
            (
                BucketLocation::in_hash(key, bucket.unit),
                bucket.unit,
                bucket.state,
            )
        });
        self.fill(buckets, units, now_ns)
    }

    /// Fills the buckets in debt among `buckets`; each comes with its unit and state.
    fn fill(
        &self,
        buckets: impl Iterator<Item = (BucketLocation, u32, u64)>,
        units: &Units,
        now_ns: u64,
    ) -> Result<u64, DatapathError> {
        let at = TimedUnits { units, now_ns };
        // Find all buckets before the first change. Stamps go last, and only unchanged ones: stamps
        // that packets write after the cursor is gone must count.
        let (stamps, buckets): (Vec<_>, Vec<_>) = buckets
            .filter(|(_, unit, state)| is_in_debt(units, *unit, *state, now_ns))
            .partition(|(_, unit, _)| at.is_of_stamps(*unit));
        for (location, ..) in &buckets {
            self.clear(location)?;
        }
        for (location, _, state) in stamps {
            self.swap(&location, &at, state, FULL)?;
        }
        Ok(buckets.len() as u64)
    }
}

/// Whether a bucket is in debt, or its debt is unknown.
fn is_in_debt(units: &Units, unit: u32, state: u64, now_ns: u64) -> bool {
    let unit: Option<&Unit> = units.unit(unit);
    unit.map_or(state, |unit| unit.owed(now_ns, state)) > 0
}
