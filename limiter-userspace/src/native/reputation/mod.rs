//! Reputations over plain memory.

mod bans;

use limiter_common::{
    address::Address, ban, charge::Workspace, decide::Clock, policy::Tables, reputation::Reputation,
};

pub use self::bans::MemoryBans;

/// Bans and sieves in memory.
#[derive(Clone, Debug, Default)]
pub struct MemoryReputation {
    /// Who is banned.
    pub bans: MemoryBans,
}

impl Reputation for MemoryReputation {
    fn is_banned<C: Clock>(&self, source: &Address, clock: &C) -> bool {
        ban::any(&self.bans, source.family) && ban::is_banned(&self.bans, source, || clock.now())
    }

    fn sift<T: Tables, Found>(&self, _tables: &T, _workspace: &mut Workspace<Found>) -> bool {
        false
    }
}
