//! Moves tokens into and out of a bucket when its rate changes.

use limiter_common::{
    bucket::UpdateOutcome,
    key::BucketKey,
    strategy::{Parameters, Spend},
    table::OrderKind,
};
use limiter_policy::policy::Units;

use super::{BucketMaps, DatapathError, lines::TimedUnits};

impl BucketMaps {
    /// The state of a bucket with these parameters; 0, a full bucket, if it is missing.
    pub(in crate::kernel) fn state_of(
        &self,
        key: &BucketKey,
        parameters: &Parameters,
        units: &Units,
        now_ns: u64,
    ) -> Result<u64, DatapathError> {
        let location = self.location(key, parameters.unit);
        self.state(&location, &TimedUnits { units, now_ns })
    }

    /// Takes `ticks` from a GCRA bucket with these parameters, and may leave it in debt; or gives `ticks`
    /// until the bucket is full. Loses no concurrent change.
    pub(in crate::kernel) fn move_ticks(
        &self,
        is_given: bool,
        ticks: u64,
        key: &BucketKey,
        (parameters, units, now_ns): (&Parameters, &Units, u64),
    ) -> Result<(), DatapathError> {
        let location = self.location(key, parameters.unit);
        let at = &TimedUnits { units, now_ns };
        let spend = Spend::unbounded(parameters.gcra.ticks(now_ns), ticks);
        if is_given {
            // A missing bucket is full.
            return self
                .repeat_order(OrderKind::GiveBack, &location, at, spend)
                .map(drop);
        }
        let ended = self.repeat_order(OrderKind::Spend, &location, at, spend)?;
        match ended.updated {
            UpdateOutcome::Stored => Ok(()),
            _ => Err(DatapathError::NoRoomForBucket),
        }
    }
}
