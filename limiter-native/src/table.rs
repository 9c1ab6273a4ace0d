//! The table of buckets over plain memory.

use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

use limiter_common::{
    bucket::{Bucket, BucketTable, Search, Swap},
    decide::DecisionSteps,
    key::BucketKey,
    table::{self, AtomicLine, HashKey, InsertOutcome, LineTable, TableLocation, WhenFull},
    unit::{Unit, UnitTable},
};
use limiter_policy::policy::Units;

use super::bucket_in;

/// A table that several threads may use at once.
#[derive(Debug)]
pub struct MemoryTable {
    lines: Vec<AtomicLine>,
    key: HashKey,
    units: Units,
    when_full: WhenFull,
    lossy_evictions: AtomicU64,
}

impl MemoryTable {
    /// Makes an empty table of `lines` lines, a power of two, for limits that count in these units.
    #[must_use]
    pub fn new(lines: u32, key: HashKey, units: Units, when_full: WhenFull) -> Self {
        Self {
            lines: (0..lines).map(|_| AtomicLine::default()).collect(),
            key,
            units,
            when_full,
            lossy_evictions: AtomicU64::new(0),
        }
    }

    /// The number of buckets evicted in debt.
    #[must_use]
    pub fn lossy_evictions(&self) -> u64 {
        self.lossy_evictions.load(SeqCst)
    }

    /// Keeps the buckets under a policy with these units, which include the units of earlier
    /// policies.
    pub fn set_units(&mut self, units: Units) {
        self.units = units;
    }

    /// The stored bucket, in any unit; `None`: there is none.
    #[must_use]
    pub fn bucket(&self, key: &BucketKey) -> Option<Bucket> {
        bucket_in(&self.lines, &self.key, key)
    }

    fn line(&self, index: u32) -> Option<&AtomicLine> {
        self.lines.get(index as usize)
    }

    fn line_count(&self) -> u32 {
        u32::try_from(self.lines.len()).unwrap_or(u32::MAX)
    }
}

impl BucketTable for MemoryTable {
    type Location = TableLocation;

    fn find(
        &self,
        key: &BucketKey,
        unit: u32,
        search: &mut Search,
        location: &mut TableLocation,
    ) -> u64 {
        table::find(
            &self.key,
            self.line_count(),
            |index| self.line(index),
            key,
            unit,
            search,
            location,
        )
    }

    fn find_part(
        &self,
        bucket: &TableLocation,
        number: u64,
        unit: u32,
        location: &mut TableLocation,
    ) -> u64 {
        let line = |index| self.line(index);
        table::find_part(self.line_count(), line, bucket, number, unit, location)
    }

    fn read(&self, location: &mut TableLocation) -> u64 {
        table::find_again(|index| self.line(index), location)
    }

    fn swap(&self, location: &TableLocation, now_ns: u64, seen: u64, wanted: u64) -> Swap {
        let line = |index| self.line(index);
        table::swap(
            line,
            location,
            seen,
            wanted,
            || self.insert(location, now_ns, wanted),
            || {
                line(location.line).is_some_and(|line| {
                    table::exchange(&line, &self.units, location.fingerprint, now_ns)
                })
            },
        )
    }
}

impl DecisionSteps for MemoryTable {}

impl MemoryTable {
    fn insert(&self, location: &TableLocation, now_ns: u64, wanted: u64) -> InsertOutcome {
        let timed = TimedTable {
            table: self,
            now_ns,
        };
        match self.line(location.line) {
            Some(line) => table::insert(&line, &timed, location.fingerprint, wanted),
            None => InsertOutcome::Unavailable,
        }
    }
}

struct TimedTable<'a> {
    table: &'a MemoryTable,
    now_ns: u64,
}

impl UnitTable for TimedTable<'_> {
    fn unit(&self, number: u32) -> Option<&Unit> {
        self.table.units.unit(number)
    }
}

impl LineTable for TimedTable<'_> {
    fn now_ns(&self) -> u64 {
        self.now_ns
    }

    fn has_odd_units(&self) -> bool {
        self.table.units.have_odd_units()
    }

    fn when_full(&self) -> WhenFull {
        self.table.when_full
    }

    fn count_lossy_eviction(&self) {
        self.table.lossy_evictions.fetch_add(1, SeqCst);
    }
}

#[cfg(test)]
mod tests;
