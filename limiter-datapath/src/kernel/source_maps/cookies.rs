//! The maps of DNS cookies: the keys that check them, and the number of queries by the result of
//! the check.

use aya::maps::{Array, IterableMap as _, Map, MapData, PerCpuArray};
use limiter_common::cookie::{CookieCheck, CookieKeys};

use crate::kernel::{
    DatapathError, batch,
    map::{error, sum},
    pod::InMap,
};

pub(in crate::kernel) const COOKIE_KEYS: &str = "COOKIE_KEYS";
pub(in crate::kernel) const COOKIE_CHECKS: &str = "COOKIE_CHECKS";

/// Sets the keys that check cookies, and reads the results. Until the keys are set, no cookie is
/// valid.
pub struct CookieMaps {
    keys: Array<MapData, InMap<CookieKeys>>,
    checks: PerCpuArray<MapData, InMap<u64>>,
}

impl CookieMaps {
    pub(super) fn new(
        mut open: impl FnMut(&'static str) -> Result<Map, DatapathError>,
    ) -> Result<Self, DatapathError> {
        let (keys, checks) = (open(COOKIE_KEYS)?, open(COOKIE_CHECKS)?);
        Ok(Self {
            keys: keys.try_into().map_err(error(COOKIE_KEYS))?,
            checks: checks.try_into().map_err(error(COOKIE_CHECKS))?,
        })
    }

    pub(super) fn maps(&self) -> [(&'static str, &MapData); 2] {
        [
            (COOKIE_KEYS, self.keys.map()),
            (COOKIE_CHECKS, self.checks.map()),
        ]
    }

    /// Sets the keys that check cookies from now on.
    pub fn set(&self, keys: CookieKeys) -> Result<(), DatapathError> {
        batch::update(&self.keys, &[0], &[InMap(keys)]).map_err(error(COOKIE_KEYS))
    }

    /// The number of queries with that result, over all CPUs.
    pub fn count(&self, check: CookieCheck) -> Result<u64, DatapathError> {
        sum(&self.checks, check as u32).map_err(error(COOKIE_CHECKS))
    }
}
