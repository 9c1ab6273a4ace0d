//! Reputations over plain memory.

mod bans;
mod cookies;
mod own;
mod sieves;

use limiter_common::{
    address::Address,
    answer, ban,
    clock::Clock,
    cookie::{CookieCheck, CookieKeys},
    decide::{self, Verdict},
    judged::Packet,
    policy::Tables,
    reputation::Reputation,
    sources::StandingStore,
};

pub use self::{
    bans::MemoryBans, cookies::MemoryCookies, own::MemoryOwnAddresses, sieves::MemorySieves,
};
use super::MemoryStanding;

/// Bans, sieves, known sources, the host's own addresses and what checks cookies, in memory.
#[derive(Debug, Default)]
pub struct MemoryReputation {
    /// The bans.
    pub bans: MemoryBans,
    /// The sieves.
    pub sieves: MemorySieves,
    /// The known sources.
    pub standing: MemoryStanding,
    /// The host's own addresses.
    pub own: MemoryOwnAddresses,
    /// What checks cookies.
    pub cookies: MemoryCookies,
}

impl Reputation for MemoryReputation {
    fn sources(&self) -> &impl StandingStore {
        &self.standing
    }

    fn is_banned<C: Clock>(&self, source: &Address, clock: &C) -> bool {
        ban::any(&self.bans, source.family) && ban::is_banned(&self.bans, source, || clock.now())
    }

    fn sift<T: Tables>(&self, tables: &T, packet: &Packet, verdict: &mut Verdict) -> bool {
        decide::sift(tables, &self.sieves, packet, verdict)
    }

    fn may_be_own(&self, address: &Address) -> bool {
        answer::may_be_own(&self.own, address)
    }

    fn cookie_keys(&self) -> CookieKeys {
        self.cookies.keys
    }

    fn count_cookie(&self, check: CookieCheck) {
        self.cookies.add(check);
    }
}
