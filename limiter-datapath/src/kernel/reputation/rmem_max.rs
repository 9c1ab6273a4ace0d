//! The map of the setting that no structure of a socket has.

use aya::maps::{Array, IterableMap as _, Map, MapData};
use limiter_common::answer::RmemMax;

use crate::kernel::{DatapathError, batch, map::error};

pub(in crate::kernel) const RMEM_MAX: &str = "RMEM_MAX";

/// Sets `net.core.rmem_max` as packets know it. Until that is done, SYN cookies offer no window
/// scale.
pub struct RmemMaxMap(Array<MapData, u64>);

impl RmemMaxMap {
    pub(super) fn new(
        mut open: impl FnMut(&'static str) -> Result<Map, DatapathError>,
    ) -> Result<Self, DatapathError> {
        let word = open(RMEM_MAX)?;
        Ok(Self(word.try_into().map_err(error(RMEM_MAX))?))
    }

    /// Returns the map with its name.
    pub(super) fn map(&self) -> (&'static str, &MapData) {
        (RMEM_MAX, self.0.map())
    }

    /// Sets it.
    pub fn set(&self, rmem_max: RmemMax) -> Result<(), DatapathError> {
        batch::update(&self.0, &[0], &[rmem_max.0]).map_err(error(RMEM_MAX))
    }
}
