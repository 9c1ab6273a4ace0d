//! The kernel's buckets, read and changed from userspace.
//!
//! [`Store::Table`] is mapped: its buckets are changed by the same compare-and-swap as by the
//! kernel, so that nothing is lost between the two. Of [`Store::Hash`] userspace can only read an
//! element and write another one in its place: what the kernel does to the bucket in the
//! microseconds between is lost.

mod capture;
mod give_back;
mod lines;
mod reset;
mod restore;

use aya::maps::{HashMap, IterableMap as _, Map, MapData, MapError};
use limiter_common::{
    bucket::{Bucket, BucketKey},
    table::unit_of,
};

use self::lines::At;
pub use self::restore::Restored;
use super::{DatapathError, Settings, hash, mapped::Mapped, maps::error, pod::InMap};
use crate::{
    config::Store,
    native::{AtomicLine, bucket_in},
};

pub(super) const BUCKETS: &str = "BUCKETS";
pub(super) const TABLE: &str = "TABLE";

/// The buckets of all instances.
pub struct BucketMaps {
    settings: Settings,
    hash: HashMap<MapData, InMap<BucketKey>, InMap<Element>>,
    table: Mapped<AtomicLine>,
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
            table: Mapped::new(open(TABLE)?.try_into().map_err(error(TABLE))?)?,
        })
    }

    /// The maps under their names.
    pub(super) fn maps(&self) -> [(&'static str, &MapData); 2] {
        [(BUCKETS, self.hash.map()), (TABLE, self.table.map())]
    }

    /// Reads them as these settings say.
    pub(super) const fn set(&mut self, settings: Settings) {
        self.settings = settings;
    }

    /// What is stored of a bucket, in whatever unit; `None`: there is none.
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

    /// How many buckets there are.
    pub(super) fn count(&self) -> Result<usize, DatapathError> {
        match self.settings.buckets.store {
            Store::Table => Ok(self.in_lines().count()),
            Store::Hash => Ok(self.elements()?.len()),
        }
    }

    /// Every element of the hash map.
    fn elements(&self) -> Result<Vec<(BucketKey, Element)>, DatapathError> {
        hash::read(&self.hash).map_err(error(BUCKETS))
    }

    /// Writes elements of the hash map, those that are there or new ones.
    fn put(
        &self,
        keys: &[InMap<BucketKey>],
        elements: &[InMap<Element>],
    ) -> Result<(), DatapathError> {
        hash::write(&self.hash, keys, elements).map_err(error(BUCKETS))
    }
}

const fn bucket_of([name, state]: Element) -> Bucket {
    Bucket {
        unit: unit_of(name),
        state,
    }
}
