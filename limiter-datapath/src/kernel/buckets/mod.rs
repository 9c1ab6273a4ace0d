//! The kernel's buckets, read and changed from userspace.
//!
//! Userspace only reads: [`Store::Table`] is mapped read-only. A kernel program makes all changes
//! (`orders.rs`) with the same compare-and-swap as the packets' program. So no change is lost
//! between the two, and a killed daemon leaves no bucket half-written.

mod capture;
mod give_back;
mod lines;
mod location;
mod moved;
mod orders;
mod reset;
mod restore;
mod sizes;
mod units;

use std::sync::OnceLock;

use aya::maps::{Array, HashMap, IterableMap as _, Map, MapData, MapError, PerCpuArray};
use limiter_common::{
    bucket::Bucket,
    counters::LOSSY_EVICTIONS,
    key::BucketKey,
    table::{AtomicLine, unit_of},
    unit::Unit,
};
use limiter_policy::config::Store;

pub use self::restore::RestoreCounts;
pub(super) use self::sizes::BucketSizes;
use super::{
    DatapathError, Settings, hash, map::error, mapped_array::MappedArray, pod::InMap,
    program::Program,
};
use limiter_native::bucket_in;

pub(super) const UNITS: &str = "UNITS";
pub(super) const STORE_COUNTS: &str = "STORE_COUNTS";
pub(super) const BUCKETS: &str = "BUCKETS";
pub(super) const TABLE: &str = "TABLE";

/// The buckets of all instances.
pub struct BucketMaps {
    settings: Settings,
    hash: HashMap<MapData, InMap<BucketKey>, InMap<Element>>,
    /// Mapped read-only.
    table: MappedArray<AtomicLine>,
    /// Indexed by unit number.
    units: Array<MapData, InMap<Unit>>,
    store_counts: PerCpuArray<MapData, u64>,
    /// The program that changes buckets, once loaded.
    orders: OnceLock<Program>,
}

/// The fill level of the buckets of all sets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BucketUse {
    /// The number of buckets in debt. Buckets without debt need no memory.
    pub in_debt: u64,
    /// The number of buckets that there is room for.
    pub capacity: u64,
}

/// An element of the hash map: the number of the unit, and the state.
type Element = [u64; 2];

impl BucketMaps {
    pub(super) fn new(
        settings: Settings,
        mut open: impl FnMut(&'static str) -> Result<Map, DatapathError>,
    ) -> Result<Self, DatapathError> {
        Ok(Self {
            settings,
            hash: open(BUCKETS)?.try_into().map_err(error(BUCKETS))?,
            table: MappedArray::read_only(open(TABLE)?.try_into().map_err(error(TABLE))?)?,
            units: open(UNITS)?.try_into().map_err(error(UNITS))?,
            store_counts: open(STORE_COUNTS)?
                .try_into()
                .map_err(error(STORE_COUNTS))?,
            orders: OnceLock::new(),
        })
    }

    pub(super) fn maps(&self) -> [(&'static str, &MapData); 4] {
        [
            (BUCKETS, self.hash.map()),
            (TABLE, self.table.map()),
            (UNITS, self.units.map()),
            (STORE_COUNTS, self.store_counts.map()),
        ]
    }

    /// Reads the maps by these settings from now on.
    pub(super) const fn set(&mut self, settings: Settings) {
        self.settings = settings;
    }

    /// Reads a stored bucket, in any unit; `None`: the bucket is missing.
    pub(super) fn bucket(&self, key: &BucketKey) -> Result<Option<Bucket>, DatapathError> {
        match self.settings.buckets.store {
            Store::Table => Ok(bucket_in(self.table.all(), &self.settings.hash_key, key)),
            Store::Hash => match self.hash.get(&InMap(*key), 0) {
                Ok(InMap(element)) => Ok(Some(bucket_of(element))),
                Err(MapError::KeyNotFound) => Ok(None),
                Err(source) => Err(error(BUCKETS)(source)),
            },
        }
    }

    /// The number of buckets of the table store that were evicted in debt.
    pub(super) fn lossy_evictions(&self) -> Result<u64, DatapathError> {
        let counts = self.store_counts.get(&LOSSY_EVICTIONS, 0);
        Ok(counts.map_err(error(STORE_COUNTS))?.iter().sum())
    }

    #[cfg(feature = "testing")]
    pub(super) fn count(&self) -> Result<usize, DatapathError> {
        match self.settings.buckets.store {
            Store::Table => Ok(self.in_lines().count()),
            Store::Hash => Ok(self.elements()?.len()),
        }
    }

    fn elements(&self) -> Result<Vec<(BucketKey, Element)>, DatapathError> {
        hash::read(&self.hash).map_err(error(BUCKETS))
    }
}

const fn bucket_of([fingerprint, state]: Element) -> Bucket {
    Bucket {
        unit: unit_of(fingerprint),
        state,
    }
}
