//! The rates in force of limits with an automatic rate.

use aya::maps::{Array, IterableMap as _, Map, MapData};
use limiter_common::{limit::LimitId, strategy::gcra::CurrentRate};

use crate::kernel::{DatapathError, batch, map::error};

pub(in crate::kernel) const CURRENT_RATES: &str = "CURRENT_RATES";

/// Reads and sets the rates in force. Packets only read them.
pub struct RateMap(Array<MapData, u64>);

impl RateMap {
    pub(super) fn new(
        mut open: impl FnMut(&'static str) -> Result<Map, DatapathError>,
    ) -> Result<Self, DatapathError> {
        let rates = open(CURRENT_RATES)?;
        Ok(Self(rates.try_into().map_err(error(CURRENT_RATES))?))
    }

    pub(super) fn map(&self) -> (&'static str, &MapData) {
        (CURRENT_RATES, self.0.map())
    }

    /// The rate last given to a limit, even an expired one.
    pub fn get(&self, limit: LimitId) -> Result<CurrentRate, DatapathError> {
        let word = self.0.get(&limit.0.into(), 0);
        word.map(CurrentRate).map_err(error(CURRENT_RATES))
    }

    /// Gives a limit a rate.
    pub fn set(&self, limit: LimitId, rate: CurrentRate) -> Result<(), DatapathError> {
        batch::update(&self.0, &[u32::from(limit.0)], &[rate.0]).map_err(error(CURRENT_RATES))
    }
}
