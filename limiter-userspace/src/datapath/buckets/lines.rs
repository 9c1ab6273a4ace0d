//! Changing buckets in the lines of the table.

use std::cell::Cell;

use limiter_common::{
    bucket::{BucketKey, Updated},
    limit::LimitId,
    strategy::{Change, Spend},
    table::{self, IN_ANOTHER_UNIT, Line as _, LineStore, WAYS, WhenFull},
    unit::{KnownUnits, Unit},
};

use super::{BucketMaps, DatapathError};
use crate::policy::Units;

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

    /// Takes a spend of the bucket of that name back.
    pub(super) fn refund(
        &self,
        line: u32,
        name: u64,
        spend: &Spend,
        at: &At<'_>,
    ) -> Result<(), DatapathError> {
        match self.change(line, name, Change::Refund(spend), at) {
            Updated::Contended => Err(DatapathError::Contended),
            _ => Ok(()),
        }
    }

    /// Changes the bucket of that name; one that would be full first gives way to a new one.
    pub(super) fn change(&self, line: u32, name: u64, wanted: Change, at: &At<'_>) -> Updated {
        let Some(line) = self.table.get(line) else {
            return Updated::Unavailable;
        };
        let is_there = || (0..WAYS).any(|way| table::is_same_bucket(line.name(way), name));
        table::update(
            || table::change(&line, name, wanted),
            || {
                // Packets exchange a bucket before they may have to be refunded; who asks for a
                // refund here may be the first to come since the limit has another rate.
                if wanted.is_refund() && is_there() {
                    return IN_ANOTHER_UNIT;
                }
                table::insert(&line, at, name, wanted, WhenFull::Evict)
            },
            || table::exchange(&line, at, name, at.now_ns, wanted),
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

    fn count_lossy_eviction(&self) {
        self.evicted.set(self.evicted.get() + 1);
    }
}
