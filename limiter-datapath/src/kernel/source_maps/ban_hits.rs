//! The map of packets dropped by bans. An element stays for as long as its prefix has a ban, and
//! only packets change it, so a change of bans loses no hit.

use std::collections::{HashMap, HashSet};

use aya::maps::{HashMap as KernelHashMap, IterableMap as _, Map, MapData, MapError};
use limiter_common::ban::{BanKey, Hits};

use crate::kernel::{DatapathError, hash, map::error, pod::InMap};

pub(in crate::kernel) const BAN_HITS: &str = "BAN_HITS";

/// Hits by prefix, under the key of its ban at the front.
pub(super) struct BanHits(KernelHashMap<MapData, InMap<BanKey>, InMap<Hits>>);

impl BanHits {
    pub(super) fn new(map: Map) -> Result<Self, DatapathError> {
        Ok(Self(map.try_into().map_err(error(BAN_HITS))?))
    }

    pub(super) fn map(&self) -> (&'static str, &MapData) {
        (BAN_HITS, self.0.map())
    }

    /// The hits of a prefix; `None`: they are not counted.
    pub(super) fn get(&self, key: &BanKey) -> Result<Option<Hits>, DatapathError> {
        match self.0.get(&InMap(*key), 0) {
            Ok(InMap(hits)) => Ok(Some(hits)),
            Err(MapError::KeyNotFound) => Ok(None),
            Err(source) => Err(error(BAN_HITS)(source)),
        }
    }

    pub(super) fn read(&self) -> Result<Vec<(BanKey, Hits)>, DatapathError> {
        hash::read(&self.0).map_err(error(BAN_HITS))
    }

    /// Starts counting the hits of a prefix, unless they are counted already.
    pub(super) fn begin(&self, key: &BanKey) -> Result<(), DatapathError> {
        match self.get(key)? {
            Some(_) => Ok(()),
            None => self.set(&[InMap(*key)], &[InMap(Hits::default())]),
        }
    }

    /// Sets the hits of prefixes that no packet counts meanwhile.
    pub(super) fn set(
        &self,
        keys: &[InMap<BanKey>],
        hits: &[InMap<Hits>],
    ) -> Result<(), DatapathError> {
        hash::write(&self.0, keys, hits).map_err(error(BAN_HITS))
    }

    pub(super) fn end(&self, key: &BanKey) -> Result<(), DatapathError> {
        hash::remove(&self.0, *key).map_err(error(BAN_HITS))?;
        Ok(())
    }

    /// Counts the hits of these prefixes, and of no others.
    pub(super) fn keep_only(&self, keys: &HashSet<BanKey>) -> Result<(), DatapathError> {
        let counted: HashMap<_, _> = self.read()?.into_iter().collect();
        for key in counted.keys().filter(|key| !keys.contains(key)) {
            self.end(key)?;
        }
        for key in keys.iter().filter(|key| !counted.contains_key(key)) {
            self.begin(key)?;
        }
        Ok(())
    }
}
