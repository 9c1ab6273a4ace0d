//! The kernel's buckets, read and changed from userspace.
//!
//! Userspace only reads: [`Store::Table`] is mapped read-only. A kernel program makes all changes
//! (`orders.rs`), by the same compare-and-swap as for packets. So no change is lost between the
//! two, and none is left half-done if this process is killed.

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
    owner::BucketKey,
    table::{AtomicLine, unit_of},
    unit::Unit,
};
use limiter_policy::config::Store;

pub use self::restore::Restored;
pub(super) use self::sizes::BucketSizes;
use super::{
    DatapathError, Settings, hash, map::error, mapped::Mapped, pod::InMap, program::Program,
};
use crate::native::bucket_in;

pub(super) const UNITS: &str = "UNITS";
pub(super) const STORE_COUNTS: &str = "STORE_COUNTS";
pub(super) const BUCKETS: &str = "BUCKETS";
pub(super) const TABLE: &str = "TABLE";

/// The buckets of all instances.
pub struct BucketMaps {
    settings: Settings,
    hash: HashMap<MapData, InMap<BucketKey>, InMap<Element>>,
    /// Mapped read-only.
    table: Mapped<AtomicLine>,
    /// Indexed by unit number.
    units: Array<MapData, InMap<Unit>>,
    store_counts: PerCpuArray<MapData, u64>,
    /// The program that changes buckets, once loaded.
    orders: OnceLock<Program>,
}

/// How full the buckets of all sets are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BucketUse {
    /// How many are in debt: the others need not be kept.
    pub in_debt: u64,
    /// How many there is room for.
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
            table: Mapped::read_only(open(TABLE)?.try_into().map_err(error(TABLE))?)?,
            units: open(UNITS)?.try_into().map_err(error(UNITS))?,
            store_counts: open(STORE_COUNTS)?
                .try_into()
                .map_err(error(STORE_COUNTS))?,
            orders: OnceLock::new(),
        })
    }

    /// Returns the maps with their names.
    pub(super) fn maps(&self) -> [(&'static str, &MapData); 4] {
        [
            (BUCKETS, self.hash.map()),
            (TABLE, self.table.map()),
            (UNITS, self.units.map()),
            (STORE_COUNTS, self.store_counts.map()),
        ]
    }

    /// Reads the maps as these settings say.
    pub(super) const fn set(&mut self, settings: Settings) {
        self.settings = settings;
    }

    /// Reads a stored bucket, in whatever unit it counts; `None`: it is missing.
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

    /// Returns how many buckets of the table store were forgotten in debt.
    pub(super) fn lossy_evictions(&self) -> Result<u64, DatapathError> {
        let counts = self.store_counts.get(&LOSSY_EVICTIONS, 0);
        Ok(counts.map_err(error(STORE_COUNTS))?.iter().sum())
    }

    /// Counts the buckets.
    #[cfg(feature = "testing")]
    pub(super) fn count(&self) -> Result<usize, DatapathError> {
        match self.settings.buckets.store {
            Store::Table => Ok(self.in_lines().count()),
            Store::Hash => Ok(self.elements()?.len()),
        }
    }

    /// Reads every element of the hash map.
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
