//! The kernel's buckets, read and changed from userspace.
//!
//! [`Store::Table`] is mapped: its buckets are changed by the same compare-and-swap as by the
//! kernel, so that nothing is lost between the two. Of [`Store::Hash`] userspace can only read an
//! element and write another one in its place: what the kernel does to the bucket in the
//! microseconds between is lost.

mod capture;
mod mapped;
mod reset;
mod restore;

use aya::maps::{HashMap, Map, MapData, MapError};
use limiter_common::{
    bucket::{BucketKey, Search, Updated},
    gcra::{Change, Spend},
    table::{self, Spot, WAYS},
};

use self::mapped::MappedLines;
pub use self::restore::Restored;
use super::{DatapathError, Settings, hash, maps::error, pod::InMap};
use crate::config::Store;

pub(super) const BUCKETS: &str = "BUCKETS";
pub(super) const TABLE: &str = "TABLE";

/// The buckets of all instances.
pub struct BucketMaps {
    settings: Settings,
    hash: HashMap<MapData, InMap<BucketKey>, InMap<u64>>,
    table: MappedLines,
}

impl BucketMaps {
    pub(super) fn new(
        settings: Settings,
        mut open: impl FnMut(&'static str) -> Result<Map, DatapathError>,
    ) -> Result<Self, DatapathError> {
        Ok(Self {
            settings,
            hash: open(BUCKETS)?.try_into().map_err(error(BUCKETS))?,
            table: MappedLines::new(open(TABLE)?.try_into().map_err(error(TABLE))?)?,
        })
    }

    /// The state of a bucket that counts in the unit of that number; `None`: there is none.
    pub(super) fn state(&self, key: &BucketKey, unit: u32) -> Result<Option<u64>, DatapathError> {
        match self.settings.buckets.store {
            Store::Table => {
                let (spot, state) = self.find(key, unit);
                Ok((spot.way < WAYS).then_some(state))
            }
            Store::Hash => match self.hash.get(&InMap(*key), 0) {
                Ok(InMap(state)) => Ok(Some(state)),
                Err(MapError::KeyNotFound) => Ok(None),
                Err(source) => Err(error(BUCKETS)(source)),
            },
        }
    }

    /// How many buckets there are.
    pub(super) fn count(&self) -> Result<usize, DatapathError> {
        match self.settings.buckets.store {
            Store::Table => Ok(self.in_lines().count()),
            Store::Hash => Ok(hash::read(&self.hash).map_err(error(BUCKETS))?.len()),
        }
    }

    /// Gives a bucket that counts in the unit of that number back what it owes at `now`, `most` at
    /// most; both in that unit's ticks. A bucket that owes less is full then.
    ///
    /// Exact in [`Store::Table`], whatever the kernel does meanwhile.
    ///
    /// # Errors
    ///
    /// [`DatapathError::Contended`]: nothing was given back.
    pub fn give_back(
        &self,
        key: &BucketKey,
        unit: u32,
        now: u64,
        most: u64,
    ) -> Result<(), DatapathError> {
        let spend = Spend::unbounded(now, most);
        match self.settings.buckets.store {
            Store::Table => {
                let (spot, _) = self.find(key, unit);
                self.give_back_in_line(spot.line, spot.name, &spend)
            }
            Store::Hash => match self.state(key, unit)? {
                None => Ok(()),
                Some(state) => self.put(&[InMap(*key)], &[InMap(spend.undo(state))]),
            },
        }
    }

    fn find(&self, key: &BucketKey, unit: u32) -> (Spot, u64) {
        let mut spot = Spot::default();
        let state = table::find(
            &self.settings.hash_key,
            self.table.count(),
            |index| self.table.get(index),
            key,
            unit,
            &mut { Search::SINGLE },
            &mut spot,
        );
        (spot, state)
    }

    /// Takes a spend of the bucket of that name back.
    fn give_back_in_line(&self, line: u32, name: u64, spend: &Spend) -> Result<(), DatapathError> {
        let Some(line) = self.table.get(line) else {
            return Ok(());
        };
        let updated = table::update(
            || table::change(&line, name, Change::Refund(spend)),
            // A bucket that is not there owes nothing.
            || Updated::Stored as u32,
        );
        match updated {
            Updated::Contended => Err(DatapathError::Contended),
            _ => Ok(()),
        }
    }

    /// Every bucket of the table: the index of its line, its name and its state.
    fn in_lines(&self) -> impl Iterator<Item = (u32, u64, u64)> {
        (0..).zip(self.table.all()).flat_map(|(index, line)| {
            let entries = (0..WAYS).filter_map(move |way| table::entry(&line, way));
            entries.map(move |(name, state)| (index, name, state))
        })
    }

    /// Writes elements of the hash map, those that are there or new ones.
    fn put(&self, keys: &[InMap<BucketKey>], states: &[InMap<u64>]) -> Result<(), DatapathError> {
        hash::write(&self.hash, keys, states).map_err(error(BUCKETS))
    }
}
