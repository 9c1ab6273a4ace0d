//! Reputations over plain memory.

mod bans;
mod sieves;

use limiter_common::{
    address::Address,
    ban,
    clock::Clock,
    decide::{self, Verdict},
    judged::Packet,
    policy::Tables,
    reputation::Reputation,
};

pub use self::{bans::MemoryBans, sieves::MemorySieves};

/// Bans and sieves in memory.
#[derive(Debug, Default)]
pub struct MemoryReputation {
    /// The bans.
    pub bans: MemoryBans,
    /// The sieves.
    pub sieves: MemorySieves,
}

impl Reputation for MemoryReputation {
    fn is_banned<C: Clock>(&self, source: &Address, clock: &C) -> bool {
        ban::any(&self.bans, source.family) && ban::is_banned(&self.bans, source, || clock.now())
    }

    fn sift<T: Tables>(&self, tables: &T, packet: &Packet, verdict: &mut Verdict) -> bool {
        decide::sift(tables, &self.sieves, packet, verdict)
    }
}
