//! The maps of bans.

use std::collections::{HashMap as Hashed, HashSet};

use aya::maps::{Array, HashMap, IterableMap as _, Map, MapData, MapError};
use limiter_common::ban::{Ban, BanKey, Hits, LENGTH_WORDS};
use limiter_policy::policy::bans::{arranged, worth};

use super::{
    ban_filter::BanFilter,
    ban_hits::{BAN_HITS, BanHits},
};
use crate::kernel::{DatapathError, batch, hash, map::error, pod::InMap};

pub(in crate::kernel) const BANS: &str = "BANS";
pub(in crate::kernel) const BAN_LENGTHS: &str = "BAN_LENGTHS";
pub(in crate::kernel) const BAN_FILTER: &str = "BAN_FILTER";

/// Reads and changes the maps of bans. Only one thread of one process may change them at a time;
/// other threads and packets may read meanwhile.
pub struct BanMaps {
    bans: HashMap<MapData, InMap<BanKey>, InMap<Ban>>,
    lengths: Array<MapData, u64>,
    filter: BanFilter,
    hits: BanHits,
}

impl BanMaps {
    pub(super) fn new(
        mut open: impl FnMut(&'static str) -> Result<Map, DatapathError>,
    ) -> Result<Self, DatapathError> {
        Ok(Self {
            bans: open(BANS)?.try_into().map_err(error(BANS))?,
            lengths: open(BAN_LENGTHS)?.try_into().map_err(error(BAN_LENGTHS))?,
            filter: BanFilter::new(open(BAN_FILTER)?.try_into().map_err(error(BAN_FILTER))?)?,
            hits: BanHits::new(open(BAN_HITS)?)?,
        })
    }

    pub(super) fn maps(&self) -> [(&'static str, &MapData); 4] {
        [
            (BANS, self.bans.map()),
            (BAN_LENGTHS, self.lengths.map()),
            (BAN_FILTER, self.filter.map()),
            self.hits.map(),
        ]
    }

    /// The kernel's id of the map, unique among all maps.
    pub fn id(&self) -> Result<u32, DatapathError> {
        let info = self.bans.map().info();
        Ok(info.map_err(error(BANS))?.id())
    }

    /// The maximum number of bans.
    pub fn capacity(&self) -> Result<u32, DatapathError> {
        let info = self.bans.map().info();
        Ok(info.map_err(error(BANS))?.max_entries())
    }

    /// Reads every ban, including ended bans that are not removed yet.
    pub fn read(&self) -> Result<Vec<(BanKey, Ban)>, DatapathError> {
        hash::read(&self.bans).map_err(error(BANS))
    }

    /// Adds some thousand bans to `bans`, from a position on; `None`: from the start. Returns the
    /// next position; `None`: no bans are left.
    pub fn read_some(
        &self,
        position: Option<u32>,
        bans: &mut Vec<(BanKey, Ban)>,
    ) -> Result<Option<u32>, DatapathError> {
        hash::read_some(&self.bans, position, bans).map_err(error(BANS))
    }

    /// Reads the ban of exactly this prefix and position, even an ended one.
    pub fn get(&self, key: &BanKey) -> Result<Option<Ban>, DatapathError> {
        match self.bans.get(&InMap(*key), 0) {
            Ok(InMap(ban)) => Ok(Some(ban)),
            Err(MapError::KeyNotFound) => Ok(None),
            Err(source) => Err(error(BANS)(source)),
        }
    }

    /// The hits of a prefix since the oldest of its present bans.
    pub fn hits(&self, key: &BanKey) -> Result<Hits, DatapathError> {
        let hits = self.hits.get(&key.at(BanKey::FRONT))?;
        Ok(hits.unwrap_or_default())
    }

    /// Reads the hits of all prefixes, by the keys of their bans at the front.
    pub fn read_hits(&self) -> Result<Vec<(BanKey, Hits)>, DatapathError> {
        self.hits.read()
    }

    /// Bans a prefix. Replaces its present ban at this position, and keeps counting its hits.
    pub fn insert(&self, key: BanKey, ban: Ban) -> Result<(), DatapathError> {
        if key.position() == BanKey::FRONT {
            // Before the ban, so that the first dropped packet counts.
            self.hits.begin(&key)?;
        }
        self.write(&[(key, ban)])
    }

    /// Removes the ban of a prefix at this position; returns whether it existed. Removing the ban at the
    /// front also forgets the hits, as it is the last one.
    pub fn remove(&self, key: &BanKey) -> Result<bool, DatapathError> {
        let removed = hash::remove(&self.bans, *key).map_err(error(BANS))?;
        if key.position() == BanKey::FRONT {
            self.hits.end(key)?;
        }
        Ok(removed)
    }

    /// Forgets hits without a ban, and starts counting hits of bans without a counter. A kill between
    /// two steps can leave either.
    pub fn repair_hits(&self) -> Result<(), DatapathError> {
        let bans = self.read()?.into_iter();
        let keys = bans.map(|(key, _)| key);
        self.hits
            .keep_only(&keys.filter(|key| key.position() == BanKey::FRONT).collect())
    }

    /// The prefix lengths that the datapath looks up, as words of bits: see [`BanKey::length_bit`].
    pub fn lengths(&self) -> Result<[u64; LENGTH_WORDS as usize], DatapathError> {
        let mut lengths = [0; LENGTH_WORDS as usize];
        for (word, bits) in (0..).zip(&mut lengths) {
            *bits = self.lengths.get(&word, 0).map_err(error(BAN_LENGTHS))?;
        }
        Ok(lengths)
    }

    /// Restricts the datapath's look-ups to these lengths. No ban may have another length.
    pub fn keep_lengths(&self, used: [u64; LENGTH_WORDS as usize]) -> Result<(), DatapathError> {
        let mut lengths = self.lengths()?;
        for (bits, used) in lengths.iter_mut().zip(used) {
            *bits &= used;
        }
        self.set_lengths(lengths)
    }

    /// Clears the filter bits that no ban needs any more. Until then, the bits of removed bans cost a
    /// look-up.
    pub fn clear_filter(&self) -> Result<(), DatapathError> {
        let bans = self.read()?;
        self.filter.set_only(bans.iter().map(|(key, _)| key));
        Ok(())
    }

    /// Bans many prefixes that no packet counts meanwhile, and sets their hits. Prefixes missing in
    /// `hits` get zero.
    pub fn insert_all(
        &self,
        bans: &[(BanKey, Ban)],
        hits: &Hashed<BanKey, Hits>,
    ) -> Result<(), DatapathError> {
        let prefixes = bans.iter().map(|(key, _)| key);
        let (keys, hits): (Vec<_>, Vec<_>) = prefixes
            .filter(|key| key.position() == BanKey::FRONT)
            .map(|key| {
                (
                    InMap(*key),
                    InMap(hits.get(key).copied().unwrap_or_default()),
                )
            })
            .unzip();
        self.hits.set(&keys, &hits)?;
        self.write(bans)
    }

    fn write(&self, bans: &[(BanKey, Ban)]) -> Result<(), DatapathError> {
        let present = self.lengths()?;
        let mut lengths = present;
        for (key, _) in bans {
            let (word, bit) = key.length_bit();
            lengths[word as usize] |= bit;
        }
        // Lengths come first: a ban has no effect until the datapath looks up its length.
        if lengths != present {
            self.set_lengths(lengths)?;
        }
        for (key, _) in bans {
            self.filter.add(key);
        }
        let (keys, bans): (Vec<_>, Vec<_>) = bans
            .iter()
            .map(|(key, ban)| (InMap(*key), InMap(*ban)))
            .unzip();
        hash::write(&self.bans, &keys, &bans).map_err(error(BANS))
    }

    /// Copies the bans of other maps, unless the maps are the same. Drops bans that have ended by
    /// `now_ns` if there is not room for all. Without room for the bans in force, fails before the
    /// first write.
    pub(super) fn migrate_from(&self, from: &Self, now_ns: u64) -> Result<(), DatapathError> {
        if self.id()? == from.id()? {
            return Ok(());
        }
        let mut bans = from.read()?;
        let capacity = self.capacity()?;
        if bans.len() > capacity as usize {
            bans.retain(|(_, ban)| ban.holds(now_ns));
        }
        if bans.len() > capacity as usize {
            return Err(DatapathError::TooManyBans {
                bans: bans.len(),
                capacity,
            });
        }
        self.insert_all(&arranged(bans), &from.read_hits()?.into_iter().collect())
    }

    /// Replaces its bans with the bans of other maps, unless the maps are the same. Without room for
    /// all, keeps the bans of greatest [`worth`]; returns the number of lost bans.
    pub(super) fn follow(&self, from: &Self) -> Result<usize, DatapathError> {
        if self.id()? == from.id()? {
            return Ok(0);
        }
        let mut bans = from.read()?;
        bans.sort_unstable_by_key(|(_, ban)| worth(ban));
        let kept = bans.len().min(self.capacity()? as usize);
        let lost = bans.len() - kept;
        bans.truncate(kept);
        let bans = arranged(bans);
        let theirs: HashSet<_> = bans.iter().map(|(key, _)| *key).collect();
        for (key, _) in self.read()? {
            if !theirs.contains(&key) {
                self.remove(&key)?;
            }
        }
        self.insert_all(&bans, &from.read_hits()?.into_iter().collect())?;
        Ok(lost)
    }

    fn set_lengths(&self, lengths: [u64; LENGTH_WORDS as usize]) -> Result<(), DatapathError> {
        let words: Vec<u32> = (0..LENGTH_WORDS).collect();
        batch::update(&self.lengths, &words, &lengths).map_err(error(BAN_LENGTHS))
    }
}
