//! The maps of sieves.

use aya::{
    EbpfLoader,
    maps::{Array, IterableMap as _, Map, MapData, PerCpuArray},
};
use limiter_common::sieve::{Entry, Pressure, Shard, SieveTraffic, Word};

use crate::{
    datapath::{
        DatapathError, batch,
        mapped::Mapped,
        maps::{error, set_sum, sum},
        pod::InMap,
    },
    native::{SieveMemory, SieveSizes},
};

pub(in crate::datapath) const SIEVE_ENTRIES: &str = "SIEVE_ENTRIES";
pub(in crate::datapath) const SIEVE_HEADS: &str = "SIEVE_HEADS";
pub(in crate::datapath) const SIEVE_SHARDS: &str = "SIEVE_SHARDS";
pub(in crate::datapath) const PRESSURE: &str = "PRESSURE";
pub(in crate::datapath) const SIEVE_TRAFFIC: &str = "SIEVE_TRAFFIC";

/// All of them.
pub(super) const NAMES: [&str; 5] = [
    SIEVE_ENTRIES,
    SIEVE_HEADS,
    SIEVE_SHARDS,
    PRESSURE,
    SIEVE_TRAFFIC,
];

/// Reads the maps of sieves, and sets their pressures.
pub struct SieveMaps {
    entries: Mapped<Entry>,
    heads: Mapped<Word>,
    shards: Mapped<Shard>,
    pressure: Array<MapData, InMap<Pressure>>,
    traffic: PerCpuArray<MapData, InMap<SieveTraffic>>,
    /// The generation of policies that they were made for.
    since: u64,
}

impl SieveMaps {
    pub(super) fn new(
        mut open: impl FnMut(&'static str) -> Result<Map, DatapathError>,
        since: u64,
    ) -> Result<Self, DatapathError> {
        let mut array = |map| open(map).map(|array| (array, error(map)));
        let (entries, of_entries) = array(SIEVE_ENTRIES)?;
        let (heads, of_heads) = array(SIEVE_HEADS)?;
        let (shards, of_shards) = array(SIEVE_SHARDS)?;
        Ok(Self {
            entries: Mapped::new(entries.try_into().map_err(of_entries)?)?,
            heads: Mapped::new(heads.try_into().map_err(of_heads)?)?,
            shards: Mapped::new(shards.try_into().map_err(of_shards)?)?,
            pressure: open(PRESSURE)?.try_into().map_err(error(PRESSURE))?,
            traffic: open(SIEVE_TRAFFIC)?
                .try_into()
                .map_err(error(SIEVE_TRAFFIC))?,
            since,
        })
    }

    /// The maps under their names.
    pub(super) fn maps(&self) -> [(&'static str, &MapData); 5] {
        [
            (SIEVE_ENTRIES, self.entries.map()),
            (SIEVE_HEADS, self.heads.map()),
            (SIEVE_SHARDS, self.shards.map()),
            (PRESSURE, self.pressure.map()),
            (SIEVE_TRAFFIC, self.traffic.map()),
        ]
    }

    /// Sets the pressure at an index: [`limiter_common::sieve::pressure_of_limit`] or
    /// [`limiter_common::sieve::pressure_of_sieve`].
    pub fn set_pressure(&self, index: u32, pressure: Pressure) -> Result<(), DatapathError> {
        batch::update(&self.pressure, &[index], &[InMap(pressure)]).map_err(error(PRESSURE))
    }

    /// The pressure at an index, also one that holds no more.
    pub fn pressure(&self, index: u32) -> Result<Pressure, DatapathError> {
        let InMap(pressure) = self.pressure.get(&index, 0).map_err(error(PRESSURE))?;
        Ok(pressure)
    }

    /// What all CPUs counted at an index.
    pub fn traffic(&self, index: u32) -> Result<SieveTraffic, DatapathError> {
        sum(&self.traffic, index).map_err(error(SIEVE_TRAFFIC))
    }

    /// Has so much been counted at an index.
    pub(in crate::datapath) fn set_traffic(
        &mut self,
        index: u32,
        traffic: SieveTraffic,
    ) -> Result<(), DatapathError> {
        set_sum(&mut self.traffic, index, traffic).map_err(error(SIEVE_TRAFFIC))
    }

    /// The generation of policies that they were made for.
    pub(super) const fn since(&self) -> u64 {
        self.since
    }

    /// What is in the sieves, as it is now.
    #[must_use]
    pub fn memory(&self) -> SieveMemory<'_> {
        SieveMemory {
            entries: self.entries.all(),
            heads: self.heads.all(),
            shards: self.shards.all(),
        }
    }
}

/// How many entries a map of that name has; `None`: always the same.
pub(super) fn entries(map: &str, sizes: SieveSizes) -> Option<u32> {
    match map {
        SIEVE_ENTRIES => Some(sizes.entries),
        SIEVE_HEADS => Some(sizes.heads),
        SIEVE_SHARDS => Some(sizes.shards),
        _ => None,
    }
}

/// Has a loader make the maps as large as they are to be.
pub(super) fn size(loader: &mut EbpfLoader<'_>, sizes: SieveSizes) {
    for map in [SIEVE_ENTRIES, SIEVE_HEADS, SIEVE_SHARDS] {
        if let Some(entries) = entries(map, sizes) {
            loader.map_max_entries(map, entries.max(1));
        }
    }
}
