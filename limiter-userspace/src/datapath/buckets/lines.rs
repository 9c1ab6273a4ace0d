//! Changing buckets in the lines of the table.

use std::cell::Cell;

use limiter_common::{
    bucket::{self, Bucket, BucketKey, Updated},
    limit::LimitId,
    strategy::{Change, Spend},
    table::{self, IN_ANOTHER_UNIT, Line as _, LineStore, WAYS, WhenFull},
    unit::{KnownUnits, Unit},
};

use super::{BucketMaps, DatapathError};
use crate::policy::Units;

/// How often a bucket that packets keep changing is tried to be changed: who has told somebody to
/// forgive has time.
const ATTEMPTS: u32 = 32 * bucket::ATTEMPTS;

impl BucketMaps {
    /// The line of a bucket that counts in the unit of that number, and its name there.
    pub(super) fn place(&self, key: &BucketKey, unit: u32) -> (u32, u64) {
        let (place, limit) = (self.settings.hash_key.place(key), LimitId(key.limit));
        let line = place.line(limit, self.table.count());
        (line, table::name(place, limit, unit))
    }

    /// Every bucket: the index of its line, its name and its state.
    pub(super) fn in_lines(&self) -> impl Iterator<Item = (u32, u64, u64)> {
        (0..).zip(self.table.all()).flat_map(|(index, line)| {
            let entries = (0..WAYS).filter_map(move |way| table::entry(&line, way));
            entries.map(move |(name, state)| (index, name, state))
        })
    }

    /// Has the bucket of that name, which is full if it is not there, go from the state that it is
    /// in to the one that `wanted` tells, however often packets come between.
    pub(super) fn alter(
        &self,
        line: u32,
        name: u64,
        at: &At<'_>,
        wanted: impl Fn(u64) -> u64,
    ) -> Result<(), DatapathError> {
        for _ in 0..ATTEMPTS {
            let seen = self
                .table
                .get(line)
                .map_or(0, |line| table::read(&line, name).1);
            // One that is there in another unit declines as well, and counts in this one then.
            let swapped = self.swap(line, name, at, seen, wanted(seen));
            if !matches!(swapped, Updated::Declined | Updated::Contended) {
                return Ok(());
            }
        }
        Err(DatapathError::Contended)
    }

    /// Has the bucket of that name go from one state to another, if it is in the first one. Where it
    /// has to be put in, one that would be full first gives way to it.
    pub(super) fn swap(
        &self,
        line: u32,
        name: u64,
        at: &At<'_>,
        seen: u64,
        wanted: u64,
    ) -> Updated {
        let Some(line) = self.table.get(line) else {
            return Updated::Unavailable;
        };
        let swap = Spend::swap(seen, wanted);
        let change = Change::Spend(&swap);
        let is_there = || (0..WAYS).any(|way| table::is_same_bucket(line.name(way), name));
        table::update(
            || table::change(&line, name, change),
            || {
                // To be put in, it looks no further than to the first that is full.
                if is_there() {
                    IN_ANOTHER_UNIT
                } else if wanted == 0 {
                    // A full bucket need not be there.
                    Updated::Stored as u32
                } else {
                    table::insert(&line, at, name, change)
                }
            },
            || table::exchange(&line, at, name, at.now_ns, change),
        )
    }
}

/// The table at one time.
pub(super) struct At<'a> {
    units: &'a Units,
    now_ns: u64,
    evicted: Cell<u64>,
}

impl<'a> At<'a> {
    pub(super) const fn new(units: &'a Units, now_ns: u64) -> Self {
        Self {
            units,
            now_ns,
            evicted: Cell::new(0),
        }
    }

    /// The state of a bucket in the unit of that number.
    pub(super) fn state(&self, bucket: Bucket, unit: u32) -> u64 {
        self.units.state(bucket, unit, self.now_ns)
    }

    /// How many buckets were forgotten while they were in debt.
    pub(super) const fn evicted(&self) -> u64 {
        self.evicted.get()
    }
}

impl KnownUnits for At<'_> {
    fn unit(&self, number: u32) -> Option<&Unit> {
        self.units.unit(number)
    }
}

impl LineStore for At<'_> {
    fn now_ns(&self) -> u64 {
        self.now_ns
    }

    fn has_odd_units(&self) -> bool {
        self.units.have_odd_units()
    }

    fn when_full(&self) -> WhenFull {
        WhenFull::Evict
    }

    fn count_lossy_eviction(&self) {
        self.evicted.set(self.evicted.get() + 1);
    }
}
