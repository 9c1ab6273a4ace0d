//! The maps that the instances share: buckets, counters and offenders.

use std::path::Path;

use aya::{
    Ebpf,
    maps::{Array, IterableMap as _, Map, MapData, MapError, PerCpuArray},
    util::nr_cpus,
};
use limiter_common::{
    bucket::{Bucket, BucketKey},
    counters::{LOSSY_EVICTIONS, LimitTraffic, Traffic},
    limit::LimitId,
    reason::{REASON_COUNT, Reason},
    unit::Unit,
};

use super::{
    BucketMaps, DatapathError, OffenderMaps, Settings,
    buckets::{BUCKETS, TABLE},
    instance, monotonic_now,
    offenders::{OFFENDERS, RECORDING},
    pod::InMap,
    shared::SharedDirectory,
};
use crate::policy::Units;

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
    buckets: BucketMaps,
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

    /// Makes those anew that are not as large as these settings say; the others are the same.
    pub(super) fn renew(&self, settings: Settings) -> Result<Self, DatapathError> {
        let directory = SharedDirectory::new()?;
        self.pin_those(directory.path(), |map, data| fits(map, data, settings))?;
        let mut loader = instance::loader(settings);
        for map in SHARED {
            loader.map_pin_path(map, directory.path().join(map));
        }
        // The others are made, and pinned there too.
        loader
            .load(settings.log.object())
            .map_err(DatapathError::Load)?;
        Self::open(directory.path(), settings)
    }

    /// Pins each of them under its name in a directory.
    pub(super) fn pin(&self, directory: &Path) -> Result<(), DatapathError> {
        self.pin_those(directory, |_, _| true)
    }

    fn pin_those(
        &self,
        directory: &Path,
        wanted: impl Fn(&str, &MapData) -> bool,
    ) -> Result<(), DatapathError> {
        for (map, data) in self.all() {
            if wanted(map, data) {
                let pinned = data.pin(directory.join(map));
                pinned.map_err(|source| DatapathError::Pin { map, source })?;
            }
        }
        Ok(())
    }

    /// Whether they are as large as those that are made with these settings.
    pub(super) fn fit(&self, settings: Settings) -> bool {
        self.all()
            .into_iter()
            .all(|(map, data)| fits(map, data, settings))
    }

    /// The maps under their names.
    fn all(&self) -> [(&'static str, &MapData); SHARED.len()] {
        let [buckets, table] = self.buckets.maps();
        let [offenders, recording] = self.offenders.maps();
        [
            buckets,
            table,
            (UNITS, self.units.map()),
            (STORE_COUNTS, self.store_counts.map()),
            (REASON_TRAFFIC, self.reason_traffic.map()),
            (LIMIT_TRAFFIC, self.limit_traffic.map()),
            offenders,
            recording,
        ]
    }

    /// Reads them as these settings say, which must fit.
    pub(super) const fn set(&mut self, settings: Settings) {
        self.buckets.set(settings);
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
            buckets: BucketMaps::new(settings, &mut open)?,
            units: open(UNITS)?.try_into().map_err(error(UNITS))?,
            store_counts: open(STORE_COUNTS)?
                .try_into()
                .map_err(error(STORE_COUNTS))?,
            reason_traffic: open(REASON_TRAFFIC)?
                .try_into()
                .map_err(error(REASON_TRAFFIC))?,
            limit_traffic: open(LIMIT_TRAFFIC)?
                .try_into()
                .map_err(error(LIMIT_TRAFFIC))?,
            offenders: OffenderMaps::new(open)?,
        })
    }

    /// What is stored of a bucket, in whatever unit; `None`: there is none.
    pub fn bucket(&self, key: &BucketKey) -> Result<Option<Bucket>, DatapathError> {
        self.buckets.bucket(key)
    }

    /// How many buckets there are.
    pub fn bucket_count(&self) -> Result<usize, DatapathError> {
        self.buckets.count()
    }

    /// The buckets, to be changed.
    #[must_use]
    pub const fn buckets(&self) -> &BucketMaps {
        &self.buckets
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
        (0..REASON_COUNT)
            .try_for_each(|reason| clear(&mut self.reason_traffic, slot * REASON_COUNT + reason))
            .map_err(error(REASON_TRAFFIC))
    }

    /// Forgets what was counted for a limit, whom it dropped, and what its buckets owe: another
    /// gets its id. `units`: those that buckets count in.
    pub(super) fn forget_limit(
        &mut self,
        limit: LimitId,
        units: &Units,
    ) -> Result<(), DatapathError> {
        let index = limit.0.into();
        clear(&mut self.limit_traffic, index).map_err(error(LIMIT_TRAFFIC))?;
        self.offenders.forget_limit(limit)?;
        self.buckets
            .reset_all(Some(limit), units, monotonic_now())?;
        Ok(())
    }

    /// What all CPUs counted for a limit.
    pub fn limit_traffic(&self, limit: LimitId) -> Result<LimitTraffic, DatapathError> {
        sum(&self.limit_traffic, limit.0.into()).map_err(error(LIMIT_TRAFFIC))
    }
}

/// Writes nothing for all CPUs.
fn clear<T>(array: &mut PerCpuArray<MapData, InMap<T>>, index: u32) -> Result<(), MapError>
where
    T: Copy + Default + 'static,
    InMap<T>: aya::Pod,
{
    let cpus = nr_cpus().map_err(|(_, source)| MapError::IoError(source))?;
    let nothing = vec![InMap(T::default()); cpus].try_into()?;
    array.set(index, nothing, 0)
}

/// Whether a map is as large as with these settings; most have the same size with all.
fn fits(map: &str, data: &MapData, settings: Settings) -> bool {
    let sizes = instance::BucketSizes::new(settings.buckets);
    let entries = match map {
        BUCKETS => sizes.hash_entries,
        TABLE => sizes.table_lines,
        OFFENDERS => settings.offenders.capacity,
        _ => return true,
    };
    data.info()
        .is_ok_and(|info| info.max_entries() == entries.max(1))
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
