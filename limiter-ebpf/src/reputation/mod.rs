//! Reputations of sources, in maps that all instances of the program share.

mod bans;
mod sieves;

use limiter_common::{
    address::{Address, Family},
    ban,
    clock::Clock,
    decide::Verdict,
    judged::Packet,
    policy::{Shape, Tables},
    reputation::Reputation,
    sources::StandingStore,
    standing::{SourceId, Standing},
};

use self::bans::MapBans;
use crate::{clock::KernelClock, standing::MapStanding};

pub(crate) struct MapReputation;

impl Reputation for MapReputation {
    #[inline(always)]
    fn is_banned<C: Clock>(&self, source: &Address, _clock: &C) -> bool {
        let Address { family, high, low } = *source;
        ban::any(&MapBans, family) && limiter_is_banned(family.number(), high, low) == 1
    }

    #[inline(always)]
    fn sift<T: Tables>(&self, _tables: &T, packet: &Packet, verdict: &mut Verdict) -> bool {
        sieves::sift(packet, verdict)
    }
}

impl StandingStore for MapReputation {
    #[inline(always)]
    fn visit(&self, shape: &Shape, source: SourceId, now_ns: u64) -> Standing {
        MapStanding.visit(shape, source, now_ns)
    }

    #[inline(always)]
    fn note_refused(&self, shape: &Shape, source: SourceId, standing: Standing, now_ns: u64) {
        MapStanding.note_refused(shape, source, standing, now_ns);
    }

    #[inline(always)]
    fn refused(
        &self,
        shape: &Shape,
        source: SourceId,
        standing: Standing,
        now_ns: u64,
    ) -> Standing {
        MapStanding.refused(shape, source, standing, now_ns)
    }
}

/// Returns 1 if a ban of the source holds now, else 0. The address is passed in words, so that it
/// need not be in memory.
///
/// It is a global function of the BPF object: the verifier walks it once, and its stack is not the
/// entry point's.
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn limiter_is_banned(is_v6: u32, high: u64, low: u64) -> u32 {
    let family = Family::of_index(is_v6 as usize);
    let source = Address { family, high, low };
    u32::from(ban::is_banned(&MapBans, &source, || KernelClock.now()))
}
