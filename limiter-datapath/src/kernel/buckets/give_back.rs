//! Gives tokens back to one bucket.

use limiter_common::{
    bucket::{ATTEMPTS, UpdateOutcome},
    key::BucketKey,
    strategy::{
        Parameters,
        moving_window::{Cursor, Log, STAMPS},
    },
    table::OrderKind,
};
use limiter_policy::policy::Units;

use super::{BucketMaps, DatapathError, lines::TimedUnits};

impl BucketMaps {
    /// Gives `cost` tokens back to a bucket with these parameters, at most its debt; `None`: the
    /// whole debt. `units`: the units that buckets count in.
    ///
    /// The result is exact even if packets change the bucket meanwhile.
    ///
    /// # Errors
    ///
    /// [`DatapathError::Contended`]: nothing was given back.
    pub fn give_back(
        &self,
        key: &BucketKey,
        parameters: &Parameters,
        cost: Option<u64>,
        units: &Units,
        now_ns: u64,
    ) -> Result<(), DatapathError> {
        let at = &TimedUnits { units, now_ns };
        let location = self.location(key, parameters.unit);
        let has_log = parameters.strategy().has_log();
        if has_log {
            return self.take_last(key, parameters, cost.unwrap_or(STAMPS), at);
        }
        match cost {
            None => self.clear(&location)?,
            Some(cost) => {
                let refund = parameters.refund(now_ns, cost);
                self.repeat_order(OrderKind::GiveBack, &location, at, refund)?
            }
        };
        Ok(())
    }

    /// Takes the last `count` passed packets out of a moving window's log. The cursor moves first,
    /// so later packets go to other stamps, or overwrite these.
    fn take_last(
        &self,
        key: &BucketKey,
        parameters: &Parameters,
        count: u64,
        at: &TimedUnits<'_>,
    ) -> Result<(), DatapathError> {
        let location = self.location(key, parameters.unit);
        for _ in 0..ATTEMPTS {
            let seen = self.state(&location, at)?;
            let cursor = Cursor::of_state(seen, at.now_ns);
            if cursor.last <= at.now_ns {
                return Ok(());
            }
            let log = Log::read(|number| {
                let stamp = key.of_part(number);
                self.state(&self.location(&stamp, parameters.stamp_unit), at)
            })?;
            let left = cursor.without_last(count, &log, at.now_ns).state();
            if self.swap(&location, at, seen, left)?.updated == UpdateOutcome::Stored {
                let taken = if left == 0 { STAMPS } else { count };
                return self.clear_stamps(
                    key,
                    parameters,
                    at,
                    (1..=taken).map(|nth| {
                        let number = cursor.stamp(nth);
                        (number, log.stamp(number))
                    }),
                );
            }
        }
        Err(DatapathError::Contended)
    }

    /// Clears the unchanged stamps of a moving window. `stamps`: their numbers and values.
    fn clear_stamps(
        &self,
        key: &BucketKey,
        parameters: &Parameters,
        at: &TimedUnits<'_>,
        stamps: impl Iterator<Item = (u64, u64)>,
    ) -> Result<(), DatapathError> {
        for (number, stamp) in stamps.filter(|(_, stamp)| *stamp > at.now_ns) {
            let location = self.location(&key.of_part(number), parameters.stamp_unit);
            self.swap(&location, at, stamp, 0)?;
        }
        Ok(())
    }
}
