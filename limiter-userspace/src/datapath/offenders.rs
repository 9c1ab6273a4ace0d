//! The maps of offenders: who was dropped, by which limit, and how often.

use aya::maps::{HashMap, Map, MapData, MapError, PerCpuArray};
use limiter_common::offender::{Counts, Offender, OffenderKey, Recording};

use super::{DatapathError, hash, maps::error, pod::InMap};

pub(super) const OFFENDERS: &str = "OFFENDERS";
pub(super) const RECORDING: &str = "RECORDING";

/// Reads the maps of offenders.
pub struct OffenderMaps {
    offenders: HashMap<MapData, InMap<OffenderKey>, InMap<Offender>>,
    recording: PerCpuArray<MapData, InMap<Recording>>,
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

    /// Every offender.
    pub fn all(&self) -> Result<Vec<(OffenderKey, Offender)>, DatapathError> {
        hash::read(&self.offenders).map_err(error(OFFENDERS))
    }

    /// One offender; `None`: nothing of it was recorded, or it was forgotten. Does not keep it
    /// from being forgotten.
    pub fn get(&self, key: &OffenderKey) -> Result<Option<Offender>, DatapathError> {
        match self.offenders.get(&InMap(*key), 0) {
            Ok(InMap(offender)) => Ok(Some(offender)),
            Err(MapError::KeyNotFound) => Ok(None),
            Err(source) => Err(error(OFFENDERS)(source)),
        }
    }

    /// What all CPUs counted of drops.
    pub fn counts(&self) -> Result<Counts, DatapathError> {
        let mut total = Counts::default();
        let of_cpus = self.recording.get(&0, 0).map_err(error(RECORDING))?;
        for InMap(of_cpu) in of_cpus.iter() {
            total += of_cpu.counts;
        }
        Ok(total)
    }
}
