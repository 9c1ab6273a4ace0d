//! Every use of a sieve, for one packet.

use super::{CONTENDED, LIST, MAX_USES, PERMA_BLOCK, SieveTraffic, SieveUse};
use crate::{address::Address, charge::Packet, decide::Verdict, policy::Tables, reason::Reason};

/// Where sieves are kept.
pub trait Sieves {
    /// [`super::Pressure::at`] of the pressure at that index.
    fn pressure(&self, index: u32, now_ns: u64) -> u32;
    /// Changes the counters at that index.
    fn count(&self, index: u32, change: impl FnOnce(&mut SieveTraffic));
    /// [`super::score`] of a source in a sieve of the policy.
    fn score<T: Tables>(&self, tables: &T, sieve: u32, source: &Address, now_ns: u64) -> u32;
}

/// Has each use of a sieve that a packet is for count it, and those that are under pressure score
/// it; returns whether one of them drops it, which the verdict then says: the first of several.
///
/// A packet that one drops is still scored by the others, as it arrived there too.
#[inline(always)]
pub fn sift<T: Tables, S: Sieves>(
    tables: &T,
    sieves: &S,
    packet: &Packet,
    verdict: &mut Verdict,
) -> bool {
    let shape = tables.shape();
    let Packet { facts, now, .. } = packet;
    // Uses of a sieve stand together: it scores a packet once.
    let mut scored_by = SieveUse::NO_SIEVE;
    let mut score = 0;
    for number in 0..MAX_USES {
        if number >= shape.sieve_uses {
            break;
        }
        let Some(used) = tables.sieve_use(number) else {
            break;
        };
        if used.limit != 0 && verdict.matched & used.limit == 0 {
            continue;
        }
        sieves.count(used.pressure, |traffic| traffic.arrived.add(facts.length));
        let above = sieves.pressure(used.pressure, *now);
        if above == 0 || used.sieve == SieveUse::NO_SIEVE {
            continue;
        }
        if used.sieve != scored_by {
            scored_by = used.sieve;
            score = sieves.score(tables, scored_by, &facts.source, *now);
        }
        let list = score & LIST;
        let is_rejected = above.wrapping_sub(1) > list;
        let drops = is_rejected
            && used.limit & shape.observing == 0
            && !matches!(verdict.reason, Reason::Iprep | Reason::IprepPerma);
        sieves.count(used.pressure, |traffic| {
            if score & CONTENDED == 0 {
                traffic.scored = traffic.scored.wrapping_add(1);
            } else {
                traffic.contended = traffic.contended.wrapping_add(1);
            }
            if drops && list == PERMA_BLOCK {
                traffic.iprep_perma.add(facts.length);
            } else if drops {
                traffic.iprep.add(facts.length);
            }
        });
        if drops {
            verdict.reason = if list == PERMA_BLOCK {
                Reason::IprepPerma
            } else {
                Reason::Iprep
            };
            if used.limit != 0 {
                verdict.drop_by(verdict.reason, used.limit.trailing_zeros());
            }
        } else if is_rejected {
            verdict.would_drop |= used.limit & shape.observing;
        }
    }
    matches!(verdict.reason, Reason::Iprep | Reason::IprepPerma)
}
