//! Reputations over plain memory.

mod bans;
mod sieves;

use limiter_common::{
    address::Address,
    ban,
    clock::Clock,
    decide::{self, Verdict},
    judged::Packet,
    policy::{Shape, Tables},
    reputation::Reputation,
    sources::StandingStore,
    standing::{SourceId, Standing},
};

pub use self::{bans::MemoryBans, sieves::MemorySieves};
use super::MemoryStanding;

/// Bans, sieves and known sources in memory.
#[derive(Debug, Default)]
pub struct MemoryReputation {
    /// The bans.
    pub bans: MemoryBans,
    /// The sieves.
    pub sieves: MemorySieves,
    /// The known sources.
    pub standing: MemoryStanding,
}

impl StandingStore for MemoryReputation {
    fn visit(&self, shape: &Shape, source: SourceId, now_ns: u64) -> Standing {
        self.standing.visit(shape, source, now_ns)
    }

    fn note_refused(&self, shape: &Shape, source: SourceId, standing: Standing, now_ns: u64) {
        self.standing.note_refused(shape, source, standing, now_ns);
    }

    fn refused(
        &self,
        shape: &Shape,
        source: SourceId,
        standing: Standing,
        now_ns: u64,
    ) -> Standing {
        self.standing.refused(shape, source, standing, now_ns)
    }
}

impl Reputation for MemoryReputation {
    fn is_banned<C: Clock>(&self, source: &Address, clock: &C) -> bool {
        ban::any(&self.bans, source.family) && ban::is_banned(&self.bans, source, || clock.now())
    }

    fn sift<T: Tables>(&self, tables: &T, packet: &Packet, verdict: &mut Verdict) -> bool {
        decide::sift(tables, &self.sieves, packet, verdict)
    }
}
