//! Trials under a secret of their own, and under one policy after another.

use limiter_policy::{
    config::{Buckets, Offenders},
    policy::CompiledPolicy,
};

use super::{Trial, load};
use crate::kernel::{DatapathError, LogLevel, Settings};

impl Trial {
    /// Loads the program with buckets, counters and offenders of its own, under a secret of its own.
    pub fn new(
        policy: &CompiledPolicy,
        buckets: Buckets,
        offenders: Offenders,
    ) -> Result<Self, DatapathError> {
        Self::with_settings(policy, Settings::new(buckets, offenders, LogLevel::Off)?)
    }

    /// Goes on under another policy, which knows the units of the one before, with the same
    /// buckets, counters and offenders.
    pub fn replace(&mut self, policy: &CompiledPolicy) -> Result<(), DatapathError> {
        let buckets = self.maps.buckets();
        buckets.clear_taken_over(&self.policy.units, &policy.units)?;
        self.instance = load(policy, self.settings, &self.directory)?;
        self.policy = policy.clone();
        Ok(())
    }
}
