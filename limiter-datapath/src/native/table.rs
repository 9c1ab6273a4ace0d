//! The table of buckets over plain memory.

use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

use limiter_common::{
    bucket::{Bucket, BucketStore, Search, Updated},
    charge::Charge,
    owner::BucketKey,
    strategy::Change,
    table::{self, HashKey, LineStore, Spot, WhenFull},
    unit::{KnownUnits, Unit},
};
use limiter_policy::policy::Units;

use super::{AtomicLine, bucket_in};

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
    /// An empty table of `lines` lines, a power of two, for limits that count in these units.
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

    /// How many buckets were forgotten while they were in debt.
    #[must_use]
    pub fn lossy_evictions(&self) -> u64 {
        self.lossy_evictions.load(SeqCst)
    }

    /// Goes on with the same buckets under a policy that has these units, those of the policies
    /// before included.
    pub fn set_units(&mut self, units: Units) {
        self.units = units;
    }

    /// What is stored of a bucket, in whatever unit; `None`: there is none.
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

impl BucketStore for MemoryTable {
    type Found = Spot;

    fn find(&self, key: &BucketKey, unit: u32, search: &mut Search, spot: &mut Spot) -> u64 {
        table::find(
            &self.key,
            self.line_count(),
            |index| self.line(index),
            key,
            unit,
            search,
            spot,
        )
    }

    fn read(&self, found: &Spot) -> u64 {
        match self.line(found.line) {
            Some(line) => table::read(&line, found.name).1,
            None => 0,
        }
    }

    fn find_stamp(&self, bucket: &Spot, number: u64, unit: u32, found: &mut Spot) -> u64 {
        let line = |index| self.line(index);
        table::find_stamp(self.line_count(), line, bucket, number, unit, found)
    }

    fn spend(&self, charge: &Charge<Spot>) -> Updated {
        match self.line(charge.found.line) {
            Some(line) if charge.spend.is_gcra() => table::spend(
                &line,
                charge.found,
                charge.seen,
                &charge.spend.gcra(),
                || self.insert(line, charge, Change::Spend(&charge.spend)),
                || self.update(charge, Change::Spend(&charge.spend)),
            ),
            Some(_) => self.update(charge, Change::Spend(&charge.spend)),
            None => Updated::Unavailable,
        }
    }

    fn refund(&self, charge: &Charge<Spot>) -> Updated {
        self.update(charge, Change::Refund(&charge.spend))
    }
}

impl MemoryTable {
    fn update(&self, charge: &Charge<Spot>, wanted: Change) -> Updated {
        match self.line(charge.found.line) {
            Some(line) => table::update(
                || table::change(&line, charge.found.name, wanted),
                || self.insert(line, charge, wanted),
                || {
                    let name = charge.found.name;
                    table::exchange(&line, &self.units, name, charge.now_ns, wanted)
                },
            ),
            None => Updated::Unavailable,
        }
    }

    fn insert(&self, line: &AtomicLine, charge: &Charge<Spot>, wanted: Change) -> u32 {
        let store = At {
            table: self,
            now_ns: charge.now_ns,
        };
        table::insert(&line, &store, charge.found.name, wanted)
    }
}

/// The table at one time.
struct At<'a> {
    table: &'a MemoryTable,
    now_ns: u64,
}

impl KnownUnits for At<'_> {
    fn unit(&self, number: u32) -> Option<&Unit> {
        self.table.units.unit(number)
    }
}

impl LineStore for At<'_> {
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
