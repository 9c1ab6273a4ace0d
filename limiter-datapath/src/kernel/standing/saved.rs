//! Saves and restores the records of sources.

use limiter_common::standing::{Shortage, StandingContext, Tick};

use crate::{
    kernel::{Datapath, DatapathError, monotonic_now, replace::PreparedPolicy},
    state::SavedSources,
};

impl Datapath {
    /// Captures the sources that are proven, familiar or trusted; none if the policy in force
    /// uses no standing.
    pub fn capture_known(&self) -> Result<SavedSources, DatapathError> {
        match self.known_sources() {
            Ok(known) => Ok(SavedSources::new(known.all(), &known.standing_context()?)),
            Err(DatapathError::NoStanding) => Ok(SavedSources::default()),
            Err(error) => Err(error),
        }
    }
}

impl PreparedPolicy {
    /// Restores sources saved `passed_ns` ago into new maps, as far as there is room. Returns the
    /// number of sources that are still known; 0 if the policy uses no standing.
    pub fn restore_saved_sources(
        &self,
        saved: &SavedSources,
        passed_ns: u64,
    ) -> Result<usize, DatapathError> {
        let features = &self.policy().features;
        if !features.uses_standing() {
            return Ok(0);
        }
        let at = StandingContext {
            settings: &features.standing,
            shortage: Shortage::NONE,
            now: Tick::of_ns(monotonic_now()),
        };
        let known: Vec<_> = saved.restore(passed_ns, &at).collect();
        let count = known.len();
        self.restore_known(known.into_iter())?;
        Ok(count)
    }
}
