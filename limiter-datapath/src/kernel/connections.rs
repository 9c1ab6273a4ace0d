//! Counts the connections that the network stack lists: those that were open before they were counted,
//! and those whose end nobody told.

use std::sync::{Mutex, PoisonError};

use limiter_common::{
    connection::{ConnectionOrder, Place},
    limit::{LimitId, NumberOf},
    owner::{BucketKey, Owner},
};

use super::{
    Datapath, DatapathError, handshakes, object::PROGRAM_RECOUNT, program::Program, stages,
};

/// The kernel program that counts connections for userspace, loaded for the first order under a
/// policy, which has that number.
#[derive(Debug, Default)]
pub(super) struct Recounting(Mutex<Option<(u64, Program)>>);

impl Datapath {
    /// Returns whether the policy in force limits connections.
    #[must_use]
    pub const fn counts_connections(&self) -> bool {
        self.policy.shape.connections != 0
    }

    /// Has the kernel count connections as the policy in force says.
    pub fn recount(&self, orders: &[ConnectionOrder]) -> Result<(), DatapathError> {
        if orders.is_empty() || !self.counts_connections() {
            return Ok(());
        }
        let mut loaded = self
            .recounting
            .0
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let generation = self.manifest.generation;
        let program = match loaded.take() {
            Some((of, program)) if of == generation => program,
            _ => self.load_recounting()?,
        };
        let (_, program) = loaded.insert((generation, program));
        for order in orders {
            program.run_on(order).map_err(DatapathError::Order)?;
        }
        Ok(())
    }

    fn load_recounting(&self) -> Result<Program, DatapathError> {
        let maps = self.reputation().ok_or(DatapathError::NoPolicy)?;
        let mut ebpf = handshakes::prepare(maps, self.settings(), &self.policy, 0)?;
        let program = stages::program(&mut ebpf, PROGRAM_RECOUNT)?;
        program.load().map_err(DatapathError::Verify)?;
        let program = program.fd().and_then(Program::of);
        program.map_err(DatapathError::Verify)
    }

    /// Returns how many connections the owner of a bucket has open by its limit; `None`: the limit is
    /// not on connections.
    pub(super) fn open_connections(&self, key: &BucketKey) -> Result<Option<u64>, DatapathError> {
        let mut limits = (0..64_u32).zip(&self.policy.limits);
        let is_counted = limits.any(|(limit_index, limit)| {
            LimitId(limit.id) == LimitId(key.limit)
                && self.policy.shape.connections >> limit_index & 1 == 1
        });
        let (true, Some(maps)) = (is_counted, self.reputation()) else {
            return Ok(None);
        };
        // A connection may change its interface.
        let key = match key.owner() {
            Owner::Number(NumberOf::Interface, _) => BucketKey::of_interface(LimitId(key.limit), 0),
            _ => *key,
        };
        let place = Place::new(&self.settings().hash_key, &key);
        maps.connections().open(place).map(Some)
    }
}
