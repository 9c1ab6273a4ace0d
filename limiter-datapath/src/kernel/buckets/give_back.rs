//! Giving one bucket tokens back.

use limiter_common::{
    bucket::{ATTEMPTS, Updated},
    owner::BucketKey,
    strategy::{
        Budget,
        moving_window::{Cursor, Log, STAMPS},
    },
    table::OrderKind,
};
use limiter_policy::policy::Units;

use super::{At, BucketMaps, DatapathError};

impl BucketMaps {
    /// Gives a bucket of these parameters `cost` tokens back, what it owes at most; `None`: all
    /// of that. `units`: those that buckets count in.
    ///
    /// Exact, whatever the kernel does meanwhile.
    ///
    /// # Errors
    ///
    /// [`DatapathError::Contended`]: nothing was given back.
    pub fn give_back(
        &self,
        key: &BucketKey,
        budget: &Budget,
        cost: Option<u64>,
        units: &Units,
        now_ns: u64,
    ) -> Result<(), DatapathError> {
        let at = &At { units, now_ns };
        let spot = self.spot(key, budget.unit);
        let has_log = budget.strategy().has_log();
        let stamps = (0..STAMPS).filter(|_| has_log);
        let stamps = stamps.map(|number| self.spot(&key.of_stamp(number), budget.stamp_unit));
        self.free_locks_of([spot].into_iter().chain(stamps))?;
        if has_log {
            return self.take_last(key, budget, cost.unwrap_or(STAMPS), at);
        }
        match cost {
            None => self.clear(&spot)?,
            Some(cost) => {
                let refund = budget.refund(now_ns, cost);
                self.repeat_order(OrderKind::GiveBack, &spot, at, refund)?
            }
        };
        Ok(())
    }

    /// Takes the `count` packets that passed last out of the log of a moving window. The cursor goes
    /// first: what comes then is stamped in places of its own, or anew.
    fn take_last(
        &self,
        key: &BucketKey,
        budget: &Budget,
        count: u64,
        at: &At<'_>,
    ) -> Result<(), DatapathError> {
        let spot = self.spot(key, budget.unit);
        for _ in 0..ATTEMPTS {
            let seen = self.state(&spot, at)?;
            let cursor = Cursor::of_state(seen, at.now_ns);
            if cursor.last <= at.now_ns {
                return Ok(());
            }
            let log = Log::read(|number| {
                let stamp = key.of_stamp(number);
                self.state(&self.spot(&stamp, budget.stamp_unit), at)
            })?;
            let left = cursor.without_last(count, &log, at.now_ns).state();
            if self.swap(&spot, at, seen, left)?.updated == Updated::Stored {
                let taken = if left == 0 { STAMPS } else { count };
                return self.clear_stamps(
                    key,
                    budget,
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

    /// Clears stamps of a moving window that are as they were, told by their numbers.
    fn clear_stamps(
        &self,
        key: &BucketKey,
        budget: &Budget,
        at: &At<'_>,
        stamps: impl Iterator<Item = (u64, u64)>,
    ) -> Result<(), DatapathError> {
        for (number, stamp) in stamps.filter(|(_, stamp)| *stamp > at.now_ns) {
            let spot = self.spot(&key.of_stamp(number), budget.stamp_unit);
            self.swap(&spot, at, stamp, 0)?;
        }
        Ok(())
    }
}
