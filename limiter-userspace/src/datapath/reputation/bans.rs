//! The maps of bans.

use aya::maps::{Array, HashMap, IterableMap as _, Map, MapData, MapError};
use limiter_common::ban::{Ban, BanKey};

use crate::datapath::{DatapathError, hash, maps::error, pod::InMap};

pub(in crate::datapath) const BANS: &str = "BANS";
pub(in crate::datapath) const BAN_LENGTHS: &str = "BAN_LENGTHS";

/// Reads and changes the maps of bans. One process changes them at a time.
pub struct BanMaps {
    bans: HashMap<MapData, InMap<BanKey>, InMap<Ban>>,
    lengths: Array<MapData, u64>,
}

impl BanMaps {
    pub(super) fn new(
        mut open: impl FnMut(&'static str) -> Result<Map, DatapathError>,
    ) -> Result<Self, DatapathError> {
        Ok(Self {
            bans: open(BANS)?.try_into().map_err(error(BANS))?,
            lengths: open(BAN_LENGTHS)?.try_into().map_err(error(BAN_LENGTHS))?,
        })
    }

    /// The maps under their names.
    pub(super) fn maps(&self) -> [(&'static str, &MapData); 2] {
        [(BANS, self.bans.map()), (BAN_LENGTHS, self.lengths.map())]
    }

    /// Every ban, also those that have ended and are not removed yet.
    pub fn read(&self) -> Result<Vec<(BanKey, Ban)>, DatapathError> {
        hash::read(&self.bans).map_err(error(BANS))
    }

    /// The ban of a prefix itself, also one that has ended.
    pub fn get(&self, key: &BanKey) -> Result<Option<Ban>, DatapathError> {
        match self.bans.get(&InMap(*key), 0) {
            Ok(InMap(ban)) => Ok(Some(ban)),
            Err(MapError::KeyNotFound) => Ok(None),
            Err(source) => Err(error(BANS)(source)),
        }
    }

    /// Bans a prefix, in place of a ban that it has.
    pub fn insert(&mut self, key: BanKey, ban: Ban) -> Result<(), DatapathError> {
        // First: a ban of a length that the datapath does not look for would not hold.
        self.add_length(&key)?;
        self.bans
            .insert(InMap(key), InMap(ban), 0)
            .map_err(error(BANS))
    }

    /// Lifts the ban of a prefix; returns whether there was one.
    pub fn remove(&mut self, key: &BanKey) -> Result<bool, DatapathError> {
        hash::remove(&mut self.bans, *key).map_err(error(BANS))
    }

    /// Takes over the bans of other maps, where these are not the same ones.
    pub(super) fn carry(&mut self, from: &Self) -> Result<(), DatapathError> {
        let id = |maps: &Self| maps.bans.map().info().map(|info| info.id());
        if id(self).map_err(error(BANS))? == id(from).map_err(error(BANS))? {
            return Ok(());
        }
        let bans = from.read()?;
        for (key, _) in &bans {
            self.add_length(key)?;
        }
        let (keys, bans): (Vec<_>, Vec<_>) = bans
            .into_iter()
            .map(|(key, ban)| (InMap(key), InMap(ban)))
            .unzip();
        hash::write(&self.bans, &keys, &bans).map_err(error(BANS))
    }

    fn add_length(&mut self, key: &BanKey) -> Result<(), DatapathError> {
        let (word, bit) = key.length_bit();
        let lengths = self.lengths.get(&word, 0).map_err(error(BAN_LENGTHS))?;
        if lengths & bit != 0 {
            return Ok(());
        }
        self.lengths
            .set(word, lengths | bit, 0)
            .map_err(error(BAN_LENGTHS))
    }
}
