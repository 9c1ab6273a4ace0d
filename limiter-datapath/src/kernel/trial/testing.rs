//! Trials with their own secret, and trials under one policy after another.

use limiter_common::connection::ConnectionOrder;
use limiter_policy::{
    config::{Buckets, Offenders},
    policy::CompiledPolicy,
};

use super::{Trial, load};
use crate::kernel::{DatapathError, LogLevel, Settings, connections::load_recounting};

impl Trial {
    /// Loads the program with its own buckets, counters, offenders and secret.
    pub fn new(
        policy: &CompiledPolicy,
        buckets: Buckets,
        offenders: Offenders,
    ) -> Result<Self, DatapathError> {
        Self::with_settings(policy, Settings::new(buckets, offenders, LogLevel::Off)?)
    }

    /// Sets whether listening sockets have room for SYNs.
    pub fn set_room(&mut self, has_room: bool) -> Result<(), DatapathError> {
        self.instance.set_room(has_room)
    }

    /// Has the kernel count connections, and charge handshakes, by the policy.
    ///
    /// Other threads may do the same concurrently.
    pub fn recount(
        &self,
        orders: impl IntoIterator<Item = ConnectionOrder>,
    ) -> Result<(), DatapathError> {
        let buckets = Some(self.maps.buckets());
        let program = load_recounting(&self.source_maps, buckets, self.settings, &self.policy)?;
        for order in orders {
            program.run_on(&order).map_err(DatapathError::Order)?;
        }
        Ok(())
    }

    /// Continues under another policy, which knows the previous policy's units, with the same
    /// buckets, counters and offenders.
    pub fn replace(&mut self, policy: &CompiledPolicy) -> Result<(), DatapathError> {
        let buckets = self.maps.buckets();
        buckets.clear_taken_over(&self.policy.units, &policy.units)?;
        self.instance = load(policy, self.settings, &self.directory)?;
        self.policy = policy.clone();
        Ok(())
    }
}
