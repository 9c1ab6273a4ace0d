//! The maps that the instances share: buckets, counters and offenders.

use std::{io, path::Path};

use aya::{
    Ebpf,
    maps::{Array, HashMap, IterableMap as _, Map, MapData, MapError, PerCpuArray},
    util::nr_cpus,
};
use limiter_common::{
    bucket::BucketKey,
    counters::{LOSSY_EVICTIONS, LimitTraffic, Traffic},
    limit::LimitId,
    reason::{REASON_COUNT, Reason},
    table::{self, EMPTY, WAYS},
    unit::Unit,
};

use super::{
    DatapathError, OffenderMaps, Settings, instance,
    offenders::{OFFENDERS, RECORDING},
    pod::InMap,
};
use crate::config::Store;

const BUCKETS: &str = "BUCKETS";
const TABLE: &str = "TABLE";
pub(super) const UNITS: &str = "UNITS";
const STORE_COUNTS: &str = "STORE_COUNTS";
const REASON_TRAFFIC: &str = "REASON_TRAFFIC";
const LIMIT_TRAFFIC: &str = "LIMIT_TRAFFIC";

/// The names of the maps that the instances share.
pub(super) const SHARED: [&str; 8] = [
    BUCKETS,
    TABLE,
    UNITS,
    STORE_COUNTS,
    REASON_TRAFFIC,
    LIMIT_TRAFFIC,
    OFFENDERS,
    RECORDING,
];

/// Reads the maps that the instances share.
pub struct SharedMaps {
    settings: Settings,
    buckets: HashMap<MapData, InMap<BucketKey>, u64>,
    /// Names at even places of a line, states at odd ones.
    table: Array<MapData, [u64; 2 * WAYS]>,
    /// By their numbers.
    units: Array<MapData, InMap<Unit>>,
    store_counts: PerCpuArray<MapData, u64>,
    reason_traffic: PerCpuArray<MapData, InMap<Traffic>>,
    limit_traffic: PerCpuArray<MapData, InMap<LimitTraffic>>,
    offenders: OffenderMaps,
}

impl SharedMaps {
    /// Opens the maps where they are pinned.
    pub(super) fn open(directory: &Path, settings: Settings) -> Result<Self, DatapathError> {
        let open = |map| {
            let data = MapData::from_pin(directory.join(map))
                .map_err(|source| DatapathError::Map { map, source })?;
            Map::from_map_data(data).map_err(|source| DatapathError::Map { map, source })
        };
        Self::new(settings, open)
    }

    /// Makes them anew, empty.
    pub(super) fn create(settings: Settings) -> Result<Self, DatapathError> {
        let mut ebpf = instance::loader(settings)
            .load(settings.log.object())
            .map_err(DatapathError::Load)?;
        Self::take(&mut ebpf, settings)
    }

    /// Pins each of them under its name in a directory.
    pub(super) fn pin(&self, directory: &Path) -> Result<(), DatapathError> {
        let all = [
            (BUCKETS, self.buckets.map()),
            (TABLE, self.table.map()),
            (STORE_COUNTS, self.store_counts.map()),
            (REASON_TRAFFIC, self.reason_traffic.map()),
            (LIMIT_TRAFFIC, self.limit_traffic.map()),
            (UNITS, self.units.map()),
        ];
        for (map, data) in all.into_iter().chain(self.offenders.maps()) {
            let pinned = data.pin(directory.join(map));
            pinned.map_err(|source| DatapathError::Pin { map, source })?;
        }
        Ok(())
    }

    /// Whether they are as large as those that are made with these settings.
    pub(super) fn fit(&self, settings: Settings) -> bool {
        let sizes = instance::BucketSizes::new(settings.buckets);
        let entries = |data: &MapData| data.info().map_or(0, |info| info.max_entries());
        entries(self.buckets.map()) == sizes.hash_entries.max(1)
            && self.table.len() == sizes.table_lines.max(1)
            && self.offenders.capacity() == settings.offenders.capacity.max(1)
    }

    /// Reads them as these settings say, which must fit.
    pub(super) const fn set(&mut self, settings: Settings) {
        self.settings = settings;
    }

    /// Takes the maps out of an instance that shares them with no other.
    pub(super) fn take(ebpf: &mut Ebpf, settings: Settings) -> Result<Self, DatapathError> {
        Self::new(settings, |map| {
            ebpf.take_map(map).ok_or(DatapathError::Missing(map))
        })
    }

    fn new(
        settings: Settings,
        mut open: impl FnMut(&'static str) -> Result<Map, DatapathError>,
    ) -> Result<Self, DatapathError> {
        Ok(Self {
            settings,
            table: open(TABLE)?.try_into().map_err(error(TABLE))?,
            units: open(UNITS)?.try_into().map_err(error(UNITS))?,
            store_counts: open(STORE_COUNTS)?
                .try_into()
                .map_err(error(STORE_COUNTS))?,
            buckets: open(BUCKETS)?.try_into().map_err(error(BUCKETS))?,
            reason_traffic: open(REASON_TRAFFIC)?
                .try_into()
                .map_err(error(REASON_TRAFFIC))?,
            limit_traffic: open(LIMIT_TRAFFIC)?
                .try_into()
                .map_err(error(LIMIT_TRAFFIC))?,
            offenders: OffenderMaps::new(open)?,
        })
    }

    /// The state of a bucket that counts in the unit of that number; `None`: there is none.
    pub fn bucket(&self, key: &BucketKey, unit: u32) -> Result<Option<u64>, DatapathError> {
        match self.settings.buckets.store {
            Store::Table => self.in_table(key, unit),
            Store::Hash => match self.buckets.get(&InMap(*key), 0) {
                Ok(state) => Ok(Some(state)),
                Err(MapError::KeyNotFound) => Ok(None),
                Err(source) => Err(error(BUCKETS)(source)),
            },
        }
    }

    fn in_table(&self, key: &BucketKey, unit: u32) -> Result<Option<u64>, DatapathError> {
        let place = self.settings.hash_key.place(key);
        let limit = LimitId(key.limit);
        let name = table::name(place, limit, unit);
        let line = self
            .table
            .get(&place.line(limit, self.table.len()), 0)
            .map_err(error(TABLE))?;
        let (pairs, _) = line.as_chunks::<2>();
        Ok(pairs
            .iter()
            .find(|[found, _]| *found == name)
            .map(|[_, state]| *state))
    }

    /// How many buckets there are.
    pub fn bucket_count(&self) -> Result<usize, DatapathError> {
        match self.settings.buckets.store {
            Store::Table => {
                let mut count = 0;
                for line in self.table.iter() {
                    let line = line.map_err(error(TABLE))?;
                    count += line
                        .iter()
                        .step_by(2)
                        .filter(|name| **name != EMPTY)
                        .count();
                }
                Ok(count)
            }
            Store::Hash => Ok(self.buckets.keys().count()),
        }
    }

    /// How many buckets were forgotten while they were in debt, of [`Store::Table`].
    pub fn lossy_evictions(&self) -> Result<u64, DatapathError> {
        let counts = self.store_counts.get(&LOSSY_EVICTIONS, 0);
        Ok(counts.map_err(error(STORE_COUNTS))?.iter().sum())
    }

    /// The offenders.
    #[must_use]
    pub const fn offenders(&self) -> &OffenderMaps {
        &self.offenders
    }

    /// What all CPUs counted under a reason, for the interface in `slot`.
    pub fn reason_traffic(&self, slot: u32, reason: Reason) -> Result<Traffic, DatapathError> {
        sum(&self.reason_traffic, slot * REASON_COUNT + reason as u32)
            .map_err(error(REASON_TRAFFIC))
    }

    /// Forgets what was counted for the interface in `slot`.
    pub(super) fn forget_interface(&mut self, slot: u32) -> Result<(), DatapathError> {
        let error = error(REASON_TRAFFIC);
        let cpus = nr_cpus().map_err(|(_, source)| error(source.into()))?;
        for reason in 0..REASON_COUNT {
            let nothing = vec![InMap(Traffic::default()); cpus].try_into();
            let nothing = nothing.map_err(|source: io::Error| error(source.into()))?;
            let place = slot * REASON_COUNT + reason;
            self.reason_traffic.set(place, nothing, 0).map_err(&error)?;
        }
        Ok(())
    }

    /// What all CPUs counted for a limit.
    pub fn limit_traffic(&self, limit: LimitId) -> Result<LimitTraffic, DatapathError> {
        sum(&self.limit_traffic, limit.0.into()).map_err(error(LIMIT_TRAFFIC))
    }
}

pub(super) fn error(map: &'static str) -> impl Fn(MapError) -> DatapathError {
    move |source| DatapathError::Map { map, source }
}

/// The sum over the CPUs.
fn sum<T>(array: &PerCpuArray<MapData, InMap<T>>, index: u32) -> Result<T, MapError>
where
    T: Copy + Default + std::ops::AddAssign + 'static,
    InMap<T>: aya::Pod,
{
    let mut total = T::default();
    for InMap(of_cpu) in array.get(&index, 0)?.iter() {
        total += *of_cpu;
    }
    Ok(total)
}
