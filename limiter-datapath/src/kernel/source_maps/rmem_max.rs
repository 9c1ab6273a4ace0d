//! The map of `net.core.rmem_max`, a setting that no socket structure holds.

use aya::maps::{Array, IterableMap as _, Map, MapData};
use limiter_common::answer::RmemMax;

use crate::kernel::{DatapathError, batch, map::error};

pub(in crate::kernel) const RMEM_MAX: &str = "RMEM_MAX";

/// Sets the copy of `net.core.rmem_max` for packets. Until it is set, SYN cookies offer no window
/// scale.
pub struct RmemMaxMap(Array<MapData, u64>);

impl RmemMaxMap {
    pub(super) fn new(
        mut open: impl FnMut(&'static str) -> Result<Map, DatapathError>,
    ) -> Result<Self, DatapathError> {
        let word = open(RMEM_MAX)?;
        Ok(Self(word.try_into().map_err(error(RMEM_MAX))?))
    }

    pub(super) fn map(&self) -> (&'static str, &MapData) {
        (RMEM_MAX, self.0.map())
    }

    /// Sets the copy.
    pub fn set(&self, rmem_max: RmemMax) -> Result<(), DatapathError> {
        batch::update(&self.0, &[0], &[rmem_max.0]).map_err(error(RMEM_MAX))
    }
}
