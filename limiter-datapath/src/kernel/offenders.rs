//! The maps of offenders: which sources were dropped, by which limit, how often, and what they asked for.

use aya::maps::{HashMap, IterableMap as _, Map, MapData, PerCpuArray};
use limiter_common::{
    limit::LimitId,
    offender::{Counts, Offender, OffenderKey, Recording},
};

use super::{DatapathError, hash, map::error, pod::InMap};

pub(super) const OFFENDERS: &str = "OFFENDERS";
pub(super) const RECORDING: &str = "RECORDING";

/// Reads the maps of offenders.
pub struct OffenderMaps {
    offenders: HashMap<MapData, InMap<OffenderKey>, InMap<Offender>>,
    recording: PerCpuArray<MapData, InMap<Recording>>,
}

/// Everything that was recorded.
#[derive(Clone, Debug, Default)]
pub struct Recorded {
    /// The remembered sources, in no order.
    pub offenders: Vec<(OffenderKey, Offender)>,
    /// The remembered names that refused packets asked for, in no order.
    pub names: Vec<(OffenderKey, Offender)>,
    /// The drops that all CPUs counted.
    pub counts: Counts,
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

    /// Returns the maps with their names.
    pub(super) fn maps(&self) -> [(&'static str, &MapData); 2] {
        [
            (OFFENDERS, self.offenders.map()),
            (RECORDING, self.recording.map()),
        ]
    }

    /// Forgets a limit's offenders.
    pub(super) fn forget_limit(&mut self, limit: LimitId) -> Result<(), DatapathError> {
        let offenders = hash::read(&self.offenders).map_err(error(OFFENDERS))?;
        for (key, _) in offenders {
            if key.limit == limit.0 {
                hash::remove(&self.offenders, key).map_err(error(OFFENDERS))?;
            }
        }
        Ok(())
    }

    /// Reads everything, a few thousand offenders per system call. Reading does not keep an
    /// offender from being forgotten.
    pub fn read(&self) -> Result<Recorded, DatapathError> {
        let recorded = hash::read(&self.offenders).map_err(error(OFFENDERS))?;
        // Read after the offenders, so that the counts include those skipped or forgotten
        // meanwhile.
        let mut counts = Counts::default();
        let of_cpus = self.recording.get(&0, 0).map_err(error(RECORDING))?;
        for InMap(of_cpu) in of_cpus.iter() {
            counts += of_cpu.counts;
        }
        let is_name = |(key, _): &(OffenderKey, Offender)| key.name().is_some();
        let (names, offenders) = recorded.into_iter().partition(is_name);
        Ok(Recorded {
            offenders,
            names,
            counts,
        })
    }
}

impl Recorded {
    /// Adds what was recorded elsewhere.
    pub(super) fn add(&mut self, other: Self) {
        self.offenders.extend(other.offenders);
        self.names.extend(other.names);
        self.counts += other.counts;
    }

    /// Returns how many sources and names are remembered: they share the room.
    #[must_use]
    pub const fn remembered(&self) -> u64 {
        (self.offenders.len() + self.names.len()) as u64
    }

    /// Returns how many of them were forgotten for want of room. May include one that was recorded
    /// during the read.
    #[must_use]
    pub const fn forgotten(&self) -> u64 {
        self.counts.inserted.saturating_sub(self.remembered())
    }

    /// Whether offenders may have been dropped more often than their counts say. They were never
    /// dropped less often.
    #[must_use]
    pub const fn is_lower_bound(&self) -> bool {
        self.counts.skipped > 0 || self.forgotten() > 0
    }
}
