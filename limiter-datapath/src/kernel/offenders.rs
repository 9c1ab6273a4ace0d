//! The maps of offenders: the sources with dropped packets, with the limit, the number of drops and the
//! names asked for.

use aya::maps::{HashMap, IterableMap as _, Map, MapData, PerCpuArray};
use limiter_common::{
    limit::LimitId,
    offender::{Offender, OffenderKey, Recording, RecordingCounts},
};

use super::{DatapathError, hash, map::error, pod::InMap};

pub(super) const OFFENDERS: &str = "OFFENDERS";
pub(super) const RECORDING: &str = "RECORDING";

/// Reads the maps of offenders.
pub struct OffenderMaps {
    offenders: HashMap<MapData, InMap<OffenderKey>, InMap<Offender>>,
    recording: PerCpuArray<MapData, InMap<Recording>>,
}

/// All recorded offenders.
#[derive(Clone, Debug, Default)]
pub struct OffenderRecords {
    /// The remembered sources, in no order.
    pub offenders: Vec<(OffenderKey, Offender)>,
    /// The remembered names in refused packets, in no order.
    pub names: Vec<(OffenderKey, Offender)>,
    /// The drops that all CPUs counted.
    pub counts: RecordingCounts,
}

impl OffenderMaps {
    pub(super) fn new(
        mut open: impl FnMut(&'static str) -> Result<Map, DatapathError>,
    ) -> Result<Self, DatapathError> {
        Ok(Self {
            offenders: open(OFFENDERS)?.try_into().map_err(error(OFFENDERS))?,
            recording: open(RECORDING)?.try_into().map_err(error(RECORDING))?,
        })
    }

    pub(super) fn maps(&self) -> [(&'static str, &MapData); 2] {
        [
            (OFFENDERS, self.offenders.map()),
            (RECORDING, self.recording.map()),
        ]
    }

    pub(super) fn forget_limit(&mut self, limit: LimitId) -> Result<(), DatapathError> {
        let offenders = hash::read(&self.offenders).map_err(error(OFFENDERS))?;
        for (key, _) in offenders {
            if key.limit == limit.0 {
                hash::remove(&self.offenders, key).map_err(error(OFFENDERS))?;
            }
        }
        Ok(())
    }

    /// Reads all records, a few thousand per system call. Reading an offender does not protect it from
    /// eviction.
    pub fn read(&self) -> Result<OffenderRecords, DatapathError> {
        let recorded = hash::read(&self.offenders).map_err(error(OFFENDERS))?;
        // Read the counts after the offenders, so that they include offenders skipped or forgotten
        // meanwhile.
        let mut counts = RecordingCounts::default();
        let of_cpus = self.recording.get(&0, 0).map_err(error(RECORDING))?;
        for InMap(of_cpu) in of_cpus.iter() {
            counts += of_cpu.counts;
        }
        let is_name = |(key, _): &(OffenderKey, Offender)| key.name().is_some();
        let (names, offenders) = recorded.into_iter().partition(is_name);
        Ok(OffenderRecords {
            offenders,
            names,
            counts,
        })
    }
}

impl OffenderRecords {
    /// Adds the records of another set of maps.
    pub(super) fn add(&mut self, other: Self) {
        self.offenders.extend(other.offenders);
        self.names.extend(other.names);
        self.counts += other.counts;
    }

    /// The number of remembered sources and names: they share the room.
    #[must_use]
    pub const fn remembered(&self) -> u64 {
        (self.offenders.len() + self.names.len()) as u64
    }

    /// The number of offenders forgotten for want of room. May include an offender recorded during the
    /// read.
    #[must_use]
    pub const fn forgotten(&self) -> u64 {
        self.counts.inserted.saturating_sub(self.remembered())
    }

    /// Whether the true number of drops may be higher than the counts. It is never lower.
    #[must_use]
    pub const fn is_lower_bound(&self) -> bool {
        self.counts.skipped > 0 || self.forgotten() > 0
    }
}
