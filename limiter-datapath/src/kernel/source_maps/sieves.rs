//! The maps of sieves.

use std::sync::Arc;

use aya::maps::{Array, IterableMap as _, Map, MapData, PerCpuArray};
use limiter_common::{
    connection::CountId,
    limit::LimitId,
    sieve::{Entry, Pressure, Shard, SieveTraffic, Word},
    table::HashKey,
};
use limiter_policy::policy::SieveSizes;

use super::connections::OpenCounts;
use crate::kernel::{
    DatapathError, batch,
    map::{again, error, set_sum, sum},
    mapped_array::MappedArray,
    pod::InMap,
};
use limiter_native::SieveMemory;

pub(in crate::kernel) const SIEVE_ENTRIES: &str = "SIEVE_ENTRIES";
pub(in crate::kernel) const SIEVE_HEADS: &str = "SIEVE_HEADS";
pub(in crate::kernel) const SIEVE_SHARDS: &str = "SIEVE_SHARDS";
pub(in crate::kernel) const PRESSURE: &str = "PRESSURE";
pub(in crate::kernel) const SIEVE_TRAFFIC: &str = "SIEVE_TRAFFIC";

pub(super) const NAMES: [&str; 5] = [
    SIEVE_ENTRIES,
    SIEVE_HEADS,
    SIEVE_SHARDS,
    PRESSURE,
    SIEVE_TRAFFIC,
];

/// Reads the maps of sieves.
pub struct SieveMaps {
    entries: MappedArray<Entry>,
    heads: MappedArray<Word>,
    shards: MappedArray<Shard>,
    traffic: PerCpuArray<MapData, InMap<SieveTraffic>>,
    pressures: Arc<PressureMaps>,
    /// The generation of policies that the maps were made for.
    since: u64,
}

/// The inputs for measuring pressure, and the map that holds the pressure for the kernel. It has
/// its own descriptors, so that the measuring thread works regardless of changes to the datapath.
pub struct PressureMaps {
    pressure: Array<MapData, InMap<Pressure>>,
    traffic: PerCpuArray<MapData, InMap<SieveTraffic>>,
    connections: OpenCounts,
    hash_key: HashKey,
}

impl PressureMaps {
    /// Sets the pressure at an index: [`limiter_common::sieve::pressure_of_limit`] or
    /// [`limiter_common::sieve::pressure_of_sieve`].
    pub fn set_pressure(&self, index: u32, pressure: Pressure) -> Result<(), DatapathError> {
        batch::update(&self.pressure, &[index], &[InMap(pressure)]).map_err(error(PRESSURE))
    }

    /// The pressure at an index, even an expired one.
    pub fn pressure(&self, index: u32) -> Result<Pressure, DatapathError> {
        let InMap(pressure) = self.pressure.get(&index, 0).map_err(error(PRESSURE))?;
        Ok(pressure)
    }

    /// The traffic that all CPUs counted at an index.
    pub fn traffic(&self, index: u32) -> Result<SieveTraffic, DatapathError> {
        sum(&self.traffic, index).map_err(error(SIEVE_TRAFFIC))
    }

    /// The number of open connections under a limit on the total.
    pub fn open_connections(&self, limit: LimitId) -> Result<u64, DatapathError> {
        self.connections
            .open(CountId::of_total(&self.hash_key, limit))
    }
}

impl SieveMaps {
    pub(super) fn new(
        mut open: impl FnMut(&'static str) -> Result<Map, DatapathError>,
        since: u64,
        connections: OpenCounts,
        hash_key: HashKey,
    ) -> Result<Self, DatapathError> {
        let mut array = |map| open(map).map(|array| (array, error(map)));
        let (entries, of_entries) = array(SIEVE_ENTRIES)?;
        let (heads, of_heads) = array(SIEVE_HEADS)?;
        let (shards, of_shards) = array(SIEVE_SHARDS)?;
        let (traffic, of_traffic) = array(SIEVE_TRAFFIC)?;
        let traffic: PerCpuArray<_, _> = traffic.try_into().map_err(&of_traffic)?;
        let pressures = PressureMaps {
            pressure: open(PRESSURE)?.try_into().map_err(error(PRESSURE))?,
            traffic: again(traffic.map())
                .and_then(Map::try_into)
                .map_err(of_traffic)?,
            connections,
            hash_key,
        };
        Ok(Self {
            entries: MappedArray::new(entries.try_into().map_err(of_entries)?)?,
            heads: MappedArray::new(heads.try_into().map_err(of_heads)?)?,
            shards: MappedArray::new(shards.try_into().map_err(of_shards)?)?,
            traffic,
            pressures: Arc::new(pressures),
            since,
        })
    }

    pub(super) fn maps(&self) -> [(&'static str, &MapData); 5] {
        [
            (SIEVE_ENTRIES, self.entries.map()),
            (SIEVE_HEADS, self.heads.map()),
            (SIEVE_SHARDS, self.shards.map()),
            (PRESSURE, self.pressures.pressure.map()),
            (SIEVE_TRAFFIC, self.traffic.map()),
        ]
    }

    /// The maps that a thread needs to measure pressure.
    #[must_use]
    pub const fn pressures(&self) -> &Arc<PressureMaps> {
        &self.pressures
    }

    /// The traffic that all CPUs counted at an index.
    pub fn traffic(&self, index: u32) -> Result<SieveTraffic, DatapathError> {
        self.pressures.traffic(index)
    }

    pub(in crate::kernel) fn set_traffic(
        &mut self,
        index: u32,
        traffic: SieveTraffic,
    ) -> Result<(), DatapathError> {
        set_sum(&mut self.traffic, index, traffic).map_err(error(SIEVE_TRAFFIC))
    }

    /// The generation of policies that the maps were made for.
    pub(super) const fn since(&self) -> u64 {
        self.since
    }

    /// The sieves' memory, which packets keep changing.
    #[must_use]
    pub fn memory(&self) -> SieveMemory<'_> {
        SieveMemory {
            entries: self.entries.all(),
            heads: self.heads.all(),
            shards: self.shards.all(),
        }
    }
}

/// The number of entries of the named map; `None`: its size is fixed.
pub(super) fn entries(map: &str, sizes: SieveSizes) -> Option<u32> {
    match map {
        SIEVE_ENTRIES => Some(sizes.entries),
        SIEVE_HEADS => Some(sizes.heads),
        SIEVE_SHARDS => Some(sizes.shards),
        _ => None,
    }
}
