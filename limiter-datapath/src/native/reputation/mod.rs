//! Reputations over plain memory.

mod bans;
mod sieves;

use limiter_common::{
    address::Address,
    ban,
    charge::Packet,
    decide::{Clock, Verdict},
    policy::Tables,
    reputation::Reputation,
    sieve,
};

pub use self::{bans::MemoryBans, sieves::MemorySieves};

/// Bans and sieves in memory.
#[derive(Debug, Default)]
pub struct MemoryReputation {
    /// Who is banned.
    pub bans: MemoryBans,
    /// Who is busy.
    pub sieves: MemorySieves,
}

impl Reputation for MemoryReputation {
    fn is_banned<C: Clock>(&self, source: &Address, clock: &C) -> bool {
        ban::any(&self.bans, source.family) && ban::is_banned(&self.bans, source, || clock.now())
    }

    fn sift<T: Tables>(&self, tables: &T, packet: &Packet, verdict: &mut Verdict) -> bool {
        sieve::sift(tables, &self.sieves, packet, verdict)
    }
}
