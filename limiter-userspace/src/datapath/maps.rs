//! The maps that the instances share: buckets and counters.

use std::path::Path;

use aya::{
    Ebpf,
    maps::{HashMap, Map, MapData, MapError, PerCpuArray},
};
use limiter_common::{
    bucket::BucketKey,
    counters::{LimitTraffic, Traffic},
    limit::LimitId,
    reason::{REASON_COUNT, Reason},
};

use super::{DatapathError, pod::InMap};

const BUCKETS: &str = "BUCKETS";
const REASON_TRAFFIC: &str = "REASON_TRAFFIC";
const LIMIT_TRAFFIC: &str = "LIMIT_TRAFFIC";

/// The names of the maps that the instances share.
pub(super) const SHARED: [&str; 3] = [BUCKETS, REASON_TRAFFIC, LIMIT_TRAFFIC];

/// Reads the maps that the instances share.
pub struct SharedMaps {
    buckets: HashMap<MapData, InMap<BucketKey>, u64>,
    reason_traffic: PerCpuArray<MapData, InMap<Traffic>>,
    limit_traffic: PerCpuArray<MapData, InMap<LimitTraffic>>,
}

impl SharedMaps {
    /// Opens the maps where they are pinned.
    pub(super) fn open(directory: &Path) -> Result<Self, DatapathError> {
        let open = |map| {
            let data = MapData::from_pin(directory.join(map))
                .map_err(|source| DatapathError::Map { map, source })?;
            Map::from_map_data(data).map_err(|source| DatapathError::Map { map, source })
        };
        Self::new(open)
    }

    /// Takes the maps out of an instance that shares them with no other.
    pub(super) fn take(ebpf: &mut Ebpf) -> Result<Self, DatapathError> {
        Self::new(|map| ebpf.take_map(map).ok_or(DatapathError::Missing(map)))
    }

    fn new(
        mut open: impl FnMut(&'static str) -> Result<Map, DatapathError>,
    ) -> Result<Self, DatapathError> {
        Ok(Self {
            buckets: open(BUCKETS)?.try_into().map_err(error(BUCKETS))?,
            reason_traffic: open(REASON_TRAFFIC)?
                .try_into()
                .map_err(error(REASON_TRAFFIC))?,
            limit_traffic: open(LIMIT_TRAFFIC)?
                .try_into()
                .map_err(error(LIMIT_TRAFFIC))?,
        })
    }

    /// The state of a bucket; `None`: there is no such bucket.
    pub fn bucket(&self, key: &BucketKey) -> Result<Option<u64>, DatapathError> {
        match self.buckets.get(&InMap(*key), 0) {
            Ok(state) => Ok(Some(state)),
            Err(MapError::KeyNotFound) => Ok(None),
            Err(source) => Err(error(BUCKETS)(source)),
        }
    }

    /// Every bucket and its state.
    pub fn buckets(&self) -> Result<Vec<(BucketKey, u64)>, DatapathError> {
        self.buckets
            .iter()
            .map(|entry| entry.map(|(InMap(key), state)| (key, state)))
            .collect::<Result<_, _>>()
            .map_err(error(BUCKETS))
    }

    /// What all CPUs counted under a reason, for the interface in `slot`.
    pub fn reason_traffic(&self, slot: u32, reason: Reason) -> Result<Traffic, DatapathError> {
        sum(&self.reason_traffic, slot * REASON_COUNT + reason as u32)
            .map_err(error(REASON_TRAFFIC))
    }

    /// What all CPUs counted for a limit.
    pub fn limit_traffic(&self, limit: LimitId) -> Result<LimitTraffic, DatapathError> {
        sum(&self.limit_traffic, limit.0.into()).map_err(error(LIMIT_TRAFFIC))
    }
}

fn error(map: &'static str) -> impl Fn(MapError) -> DatapathError {
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
