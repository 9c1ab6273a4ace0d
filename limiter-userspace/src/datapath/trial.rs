//! The kernel's program on trial: attached to nothing, one frame at a time, on a clock that
//! the caller sets.

use limiter_common::decide::Verdict;

use super::{Clocking, DatapathError, Instance, LogLevel, Settings, SharedMaps};
use crate::{
    config::{Buckets, Offenders},
    policy::CompiledPolicy,
};

/// An instance that tells its verdict on each frame.
pub struct Trial {
    policy: CompiledPolicy,
    instance: Instance,
    maps: SharedMaps,
}

impl Trial {
    /// Loads the program with buckets, counters and offenders of its own.
    pub fn new(
        policy: &CompiledPolicy,
        buckets: Buckets,
        offenders: Offenders,
    ) -> Result<Self, DatapathError> {
        let settings = Settings::new(buckets, offenders, LogLevel::Off)?;
        let mut instance = Instance::load(policy, 0, settings, Clocking::Test)?;
        let maps = instance.take_maps(settings)?;
        Ok(Self {
            policy: policy.clone(),
            instance,
            maps,
        })
    }

    /// Decides on a frame at a time of the program's clock, in nanoseconds.
    ///
    /// # Errors
    ///
    /// The kernel's; and [`DatapathError::NoVerdict`] unless the program told a verdict, and
    /// did what that says.
    pub fn judge(&mut self, now_ns: u64, frame: &[u8]) -> Result<Verdict, DatapathError> {
        let (action, verdict) = self.instance.test(now_ns, frame)?;
        if verdict.action(&self.policy) == action {
            Ok(verdict)
        } else {
            Err(DatapathError::NoVerdict)
        }
    }

    /// The buckets, counters and offenders.
    #[must_use]
    pub const fn maps(&self) -> &SharedMaps {
        &self.maps
    }
}
