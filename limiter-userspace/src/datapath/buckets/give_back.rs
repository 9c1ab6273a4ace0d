//! Giving one bucket tokens back.

use limiter_common::{
    bucket::{ATTEMPTS, Bucket, BucketKey, Updated},
    strategy::{
        Budget, Strategy,
        moving_window::{Cursor, Log, STAMPS},
    },
    table::{LOCKED, LineStore as _},
};

use super::{At, BucketMaps, DatapathError, InMap};
use crate::{config::Store, policy::Units};

impl BucketMaps {
    /// Gives a bucket of these parameters `cost` tokens back, what it owes at most; `None`: all
    /// of that. `units`: those that buckets count in.
    ///
    /// Exact in [`Store::Table`], whatever the kernel does meanwhile.
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
        let at = &At::new(units, now_ns);
        match (budget.strategy(), cost) {
            (Strategy::MovingWindow, _) => self.take_last(key, budget, cost.unwrap_or(STAMPS), at),
            (_, None) => self.alter_bucket(key, budget.unit, at, |_| 0),
            (_, Some(cost)) => self.alter_bucket(key, budget.unit, at, |state| {
                budget.refunded(now_ns, state, cost)
            }),
        }
    }

    /// Has a bucket go from its state to the one that `wanted` tells, in the unit of that number.
    fn alter_bucket(
        &self,
        key: &BucketKey,
        unit: u32,
        at: &At<'_>,
        wanted: impl Fn(u64) -> u64,
    ) -> Result<(), DatapathError> {
        match self.settings.buckets.store {
            Store::Table => {
                let (line, name) = self.place(key, unit);
                self.alter(line, name, at, wanted)
            }
            Store::Hash => {
                let state = self.state(key, unit, at)?;
                // One that is not there is full, and is not to be made.
                if state == 0 {
                    return Ok(());
                }
                self.put(&[InMap(*key)], &[InMap([unit.into(), wanted(state)])])
            }
        }
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
        for _ in 0..ATTEMPTS {
            let seen = self.state(key, budget.unit, at)?;
            let cursor = Cursor::of_state(seen, at.now_ns());
            if cursor.last <= at.now_ns() {
                return Ok(());
            }
            let log = Log::read(key, |stamp| self.state(stamp, budget.stamp_unit, at))?;
            let left = cursor.without_last(count, &log, at.now_ns()).state();
            if self.swap_bucket(key, budget.unit, at, seen, left)? {
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
        for (number, stamp) in stamps.filter(|(_, stamp)| *stamp > at.now_ns()) {
            self.swap_bucket(&key.of_stamp(number), budget.stamp_unit, at, stamp, 0)?;
        }
        Ok(())
    }

    /// The state of a bucket in the unit of that number.
    fn state(&self, key: &BucketKey, unit: u32, at: &At<'_>) -> Result<u64, DatapathError> {
        match self.bucket(key)? {
            None => Ok(0),
            Some(Bucket { state: LOCKED, .. }) => Err(DatapathError::Contended),
            Some(bucket) => Ok(at.state(bucket, unit)),
        }
    }

    /// Has a bucket go from one state to another, if it is in the first one; returns whether it was.
    fn swap_bucket(
        &self,
        key: &BucketKey,
        unit: u32,
        at: &At<'_>,
        seen: u64,
        wanted: u64,
    ) -> Result<bool, DatapathError> {
        match self.settings.buckets.store {
            Store::Table => {
                let (line, name) = self.place(key, unit);
                Ok(self.swap(line, name, at, seen, wanted) == Updated::Stored)
            }
            Store::Hash => {
                let is_same = self.state(key, unit, at)? == seen;
                if is_same {
                    self.put(&[InMap(*key)], &[InMap([unit.into(), wanted])])?;
                }
                Ok(is_same)
            }
        }
    }
}
