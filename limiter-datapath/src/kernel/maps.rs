//! The maps that the instances share: buckets, counters and offenders.

use aya::maps::{IterableMap as _, Map, MapData, PerCpuArray};
use limiter_common::{
    answer::Answer,
    bucket::Bucket,
    counters::{LimitTraffic, Traffic, answer_counter, standing_counter},
    key::BucketKey,
    limit::LimitId,
    reason::{REASON_COUNT, Reason},
    standing::Standing,
};
use limiter_policy::policy::Units;

use super::{
    BucketMaps, DatapathError, OffenderMaps, Settings,
    buckets::{BUCKETS, BucketSizes, STORE_COUNTS, TABLE, UNITS},
    map::{clear, error, sum},
    monotonic_now,
    offenders::{OFFENDERS, RECORDING},
    pinned_maps::PinnedMaps,
    pod::InMap,
};

const REASON_TRAFFIC: &str = "REASON_TRAFFIC";
const LIMIT_TRAFFIC: &str = "LIMIT_TRAFFIC";
const STANDING_TRAFFIC: &str = "STANDING_TRAFFIC";
const ANSWER_TRAFFIC: &str = "ANSWER_TRAFFIC";

/// Reads the maps that the instances share.
pub struct SharedMaps {
    buckets: BucketMaps,
    reason_traffic: PerCpuArray<MapData, InMap<Traffic>>,
    limit_traffic: PerCpuArray<MapData, InMap<LimitTraffic>>,
    standing_traffic: PerCpuArray<MapData, InMap<LimitTraffic>>,
    answer_traffic: PerCpuArray<MapData, InMap<Traffic>>,
    offenders: OffenderMaps,
}

impl PinnedMaps for SharedMaps {
    const NAMES: &'static [&'static str] = &[
        BUCKETS,
        TABLE,
        UNITS,
        STORE_COUNTS,
        REASON_TRAFFIC,
        LIMIT_TRAFFIC,
        STANDING_TRAFFIC,
        ANSWER_TRAFFIC,
        OFFENDERS,
        RECORDING,
    ];

    fn new(
        settings: Settings,
        mut open: impl FnMut(&'static str) -> Result<Map, DatapathError>,
    ) -> Result<Self, DatapathError> {
        Ok(Self {
            buckets: BucketMaps::new(settings, &mut open)?,
            reason_traffic: open(REASON_TRAFFIC)?
                .try_into()
                .map_err(error(REASON_TRAFFIC))?,
            limit_traffic: open(LIMIT_TRAFFIC)?
                .try_into()
                .map_err(error(LIMIT_TRAFFIC))?,
            standing_traffic: open(STANDING_TRAFFIC)?
                .try_into()
                .map_err(error(STANDING_TRAFFIC))?,
            answer_traffic: open(ANSWER_TRAFFIC)?
                .try_into()
                .map_err(error(ANSWER_TRAFFIC))?,
            offenders: OffenderMaps::new(open)?,
        })
    }

    fn all(&self) -> Vec<(&'static str, &MapData)> {
        let [offenders, recording] = self.offenders.maps();
        let mut maps = Vec::from(self.buckets.maps());
        maps.extend([
            (REASON_TRAFFIC, self.reason_traffic.map()),
            (LIMIT_TRAFFIC, self.limit_traffic.map()),
            (STANDING_TRAFFIC, self.standing_traffic.map()),
            (ANSWER_TRAFFIC, self.answer_traffic.map()),
            offenders,
            recording,
        ]);
        maps
    }

    fn entries(map: &str, settings: Settings) -> Option<u32> {
        let sizes = BucketSizes::new(settings.buckets);
        match map {
            BUCKETS => Some(sizes.hash_entries),
            TABLE => Some(sizes.table_lines),
            OFFENDERS => Some(settings.offenders.capacity),
            _ => None,
        }
    }
}

impl SharedMaps {
    /// Reads the maps by these settings from now on; the maps must fit them.
    pub(super) const fn set(&mut self, settings: Settings) {
        self.buckets.set(settings);
    }

    /// Reads a stored bucket, in any unit; `None`: the bucket is missing.
    pub fn bucket(&self, key: &BucketKey) -> Result<Option<Bucket>, DatapathError> {
        self.buckets.bucket(key)
    }

    /// Counts the buckets.
    #[cfg(feature = "testing")]
    pub fn bucket_count(&self) -> Result<usize, DatapathError> {
        self.buckets.count()
    }

    /// The buckets, to be changed.
    #[must_use]
    pub const fn buckets(&self) -> &BucketMaps {
        &self.buckets
    }

    /// The number of buckets of the table store that were evicted in debt.
    pub fn lossy_evictions(&self) -> Result<u64, DatapathError> {
        self.buckets.lossy_evictions()
    }

    /// The offenders.
    #[must_use]
    pub const fn offenders(&self) -> &OffenderMaps {
        &self.offenders
    }

    /// The traffic that all CPUs counted under a reason on the interface with the number
    /// `interface_number`.
    pub fn reason_traffic(
        &self,
        interface_number: u32,
        reason: Reason,
    ) -> Result<Traffic, DatapathError> {
        sum(
            &self.reason_traffic,
            interface_number * REASON_COUNT + reason as u32,
        )
        .map_err(error(REASON_TRAFFIC))
    }

    /// Clears the counters of the interface with the number `interface_number`.
    pub(super) fn forget_interface(&mut self, interface_number: u32) -> Result<(), DatapathError> {
        (0..REASON_COUNT)
            .try_for_each(|reason| {
                clear(
                    &mut self.reason_traffic,
                    interface_number * REASON_COUNT + reason,
                )
            })
            .map_err(error(REASON_TRAFFIC))
    }

    /// Clears a limit's counters, offenders and debts, because its id goes to another limit.
    /// `units`: the units that buckets count in.
    pub(super) fn forget_limit(
        &mut self,
        limit: LimitId,
        units: &Units,
    ) -> Result<(), DatapathError> {
        let index = limit.0.into();
        clear(&mut self.limit_traffic, index).map_err(error(LIMIT_TRAFFIC))?;
        for standing in Standing::ALL {
            clear(
                &mut self.standing_traffic,
                standing_counter(limit, standing),
            )
            .map_err(error(STANDING_TRAFFIC))?;
        }
        for answer in Answer::ALL {
            clear(&mut self.answer_traffic, answer_counter(limit, answer))
                .map_err(error(ANSWER_TRAFFIC))?;
        }
        self.offenders.forget_limit(limit)?;
        self.buckets
            .reset_all(Some(limit), units, monotonic_now())?;
        Ok(())
    }

    /// The traffic that all CPUs counted for a limit.
    pub fn limit_traffic(&self, limit: LimitId) -> Result<LimitTraffic, DatapathError> {
        sum(&self.limit_traffic, limit.0.into()).map_err(error(LIMIT_TRAFFIC))
    }

    /// The traffic that each CPU counted for a limit, in CPU order.
    pub(super) fn limit_traffic_by_cpu(
        &self,
        limit: LimitId,
    ) -> Result<Vec<LimitTraffic>, DatapathError> {
        let of_cpus = self.limit_traffic.get(&limit.0.into(), 0);
        let of_cpus = of_cpus.map_err(error(LIMIT_TRAFFIC))?;
        Ok(of_cpus.iter().map(|InMap(of_cpu)| *of_cpu).collect())
    }

    /// The traffic of sources of that standing under a limit with a reserve, over all CPUs.
    pub fn standing_traffic(
        &self,
        limit: LimitId,
        standing: Standing,
    ) -> Result<LimitTraffic, DatapathError> {
        sum(&self.standing_traffic, standing_counter(limit, standing))
            .map_err(error(STANDING_TRAFFIC))
    }

    /// The answers of that kind sent for a limit, over all CPUs.
    pub fn answer_traffic(&self, limit: LimitId, answer: Answer) -> Result<Traffic, DatapathError> {
        sum(&self.answer_traffic, answer_counter(limit, answer)).map_err(error(ANSWER_TRAFFIC))
    }
}
