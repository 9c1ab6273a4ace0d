//! The tables of sources in maps that all instances of the program share.

mod bans;
mod cached_names;
mod cookies;
mod own;
mod sieves;

use limiter_common::{
    address::{Address, Family},
    answer,
    ban::{self, BanKey, BanMatch},
    classified_packet::ClassifiedPacket,
    clock::Clock,
    cookie::{CookieCheck, CookieKeys},
    counters::Traffic,
    decide::Verdict,
    policy::{Features, Tables},
    source_tables::SourceTables,
    sources::StandingTable,
};

use self::{bans::MapBans, own::MapOwnAddresses};
use crate::{clock::KernelClock, own_connections, standing::MapStanding};

pub(crate) struct MapSourceTables;

impl SourceTables for MapSourceTables {
    #[inline(always)]
    fn sources(&self) -> &impl StandingTable {
        &MapStanding
    }

    #[inline(always)]
    fn banned_as<C: Clock>(&self, source: &Address, _clock: &C) -> BanMatch {
        let Address { family, high, low } = *source;
        if ban::any(&MapBans, family) {
            BanMatch::of_length(limiter_banned_as(family.number(), high, low))
        } else {
            BanMatch::NOT
        }
    }

    #[inline(always)]
    fn count_hit(&self, key: &BanKey, traffic: Traffic) {
        bans::count_hit(key, traffic);
    }

    #[inline(always)]
    fn sift<T: Tables>(
        &self,
        _tables: &T,
        packet: &ClassifiedPacket,
        verdict: &mut Verdict,
    ) -> bool {
        sieves::sift(packet, verdict)
    }

    #[inline(always)]
    fn is_name_cached(&self, _features: &Features, hash: u64, now_ns: u64) -> bool {
        cached_names::limiter_is_name_cached(hash, now_ns) == 1
    }

    #[inline(always)]
    fn enter_name(&self, _features: &Features, hash: u64, now_ns: u64) {
        cached_names::limiter_keep_name(hash, now_ns);
    }

    #[inline(always)]
    fn may_be_own(&self, address: &Address) -> bool {
        answer::may_be_own(&MapOwnAddresses, address)
    }

    #[inline(always)]
    fn cookie_keys(&self) -> CookieKeys {
        cookies::keys()
    }

    #[inline(always)]
    fn is_of_own_connection(&self, packet: &ClassifiedPacket) -> bool {
        own_connections::contain(packet)
    }

    #[inline(always)]
    fn count_cookie(&self, check: CookieCheck) {
        cookies::count(check);
    }
}

/// The length of the prefix by which the source is banned now, or 0. The address is passed in words, so that it need
/// not be in memory.
///
/// It is a global function of the BPF object: the verifier walks it once, and it does not use the entry point's stack.
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn limiter_banned_as(is_v6: u32, high: u64, low: u64) -> u32 {
    let family = Family::of_index(is_v6 as usize);
    let source = Address { family, high, low };
    ban::banned_as(&MapBans, &source, || KernelClock.now()).length()
}
