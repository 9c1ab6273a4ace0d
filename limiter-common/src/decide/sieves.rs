//! The stage of sieves: applies every use of a sieve to one packet.

use super::{DecisionSteps, Pipeline, Progress, Scratch};
use crate::{
    address::Address,
    classified_packet::ClassifiedPacket,
    clock::Clock,
    offender::{Dropper, OffenderTable},
    policy::Tables,
    reason::Reason,
    sieve::{CONTENDED, LIST, MAX_USES, PERMA_BLOCK, SieveTraffic, SieveUse},
    source_tables::SourceTables,
    verdict::Verdict,
};

/// A table of sieves.
pub trait Sieves {
    /// Returns [`crate::sieve::Pressure::at`] for the pressure at that index.
    fn pressure(&self, index: u32, now_ns: u64) -> u32;
    /// Changes the counters at that index.
    fn count(&self, index: u32, change: impl FnOnce(&mut SieveTraffic));
    /// Returns [`crate::sieve::score`] of a source in a sieve of the policy.
    fn score<T: Tables>(&self, tables: &T, sieve: u32, source: &Address, now_ns: u64) -> u32;

    /// Calls [`sift_by`]. In the kernel program it is a separate function, which the verifier walks
    /// once and not once for each use.
    #[inline(always)]
    fn sift_by<T: Tables>(
        &self,
        tables: &T,
        number: u32,
        packet: &ClassifiedPacket,
        verdict: &mut Verdict,
        previous: u32,
    ) -> u32
    where
        Self: Sized,
    {
        sift_by(tables, self, number, packet, verdict, previous)
    }
}

impl<C, T, B, O, R> Pipeline<'_, C, T, B, O, R>
where
    C: Clock,
    T: Tables,
    B: DecisionSteps,
    O: OffenderTable,
    R: SourceTables,
{
    /// Drops the current packet if a sieve does, and records its source as an offender.
    #[inline(always)]
    pub(super) fn sift(&self, scratch: &mut Scratch<B::Location>) -> Progress {
        let waiting = scratch.waiting(self.tables.features());
        let Scratch {
            packet, verdict, ..
        } = &mut *scratch;
        let before = verdict.would_drop;
        verdict.matched &= !waiting;
        let is_dropped = self.source_tables.sift(self.tables, packet, verdict);
        verdict.matched |= waiting;
        if (is_dropped || verdict.would_drop != before) && self.is_exempt(scratch) {
            scratch.exempt();
            return Progress::Decided;
        }
        let Scratch {
            packet, verdict, ..
        } = scratch;
        if is_dropped {
            let (limit_index, by) = (verdict.refused_by, Dropper::Sieve);
            self.offenders.record(self.tables, packet, limit_index, by);
            return Progress::Decided;
        }
        if verdict.matched == 0 {
            Progress::Decided
        } else {
            Progress::Undecided
        }
    }
}

/// Counts a packet in each use of a sieve that applies to it, and scores it in uses under pressure.
/// Returns whether a use drops the packet; the verdict then names the first such use. Limits on
/// connections count only packets that would open a connection.
///
/// The other uses still score a dropped packet, because it arrived for them too.
#[inline(always)]
pub fn sift<T: Tables, S: Sieves>(
    tables: &T,
    sieves: &S,
    packet: &ClassifiedPacket,
    verdict: &mut Verdict,
) -> bool {
    let features = tables.features();
    let mut counting = verdict.matched;
    if !packet.facts.is_first_segment() {
        // Limits by name count nothing but data that asks for admission.
        counting &= !features.nameless_connections();
    }
    let mut scored = NOT_SCORED;
    for number in 0..MAX_USES {
        if number >= features.sieve_uses {
            break;
        }
        let Some(used) = tables.sieve_use(number) else {
            break;
        };
        if used.limit == 0 || counting & used.limit != 0 {
            scored = sieves.sift_by(tables, number, packet, verdict, scored);
        }
    }
    verdict.reason.is_of_sieve()
}

/// Counts and scores the packet for one use that applies to it. `previous` is the result of the use
/// before it, or [`NOT_SCORED`].
#[inline(always)]
pub fn sift_by<T: Tables, S: Sieves>(
    tables: &T,
    sieves: &S,
    number: u32,
    packet: &ClassifiedPacket,
    verdict: &mut Verdict,
    previous: u32,
) -> u32 {
    let Some(used) = tables.sieve_use(number) else {
        return previous;
    };
    let ClassifiedPacket { facts, now, .. } = packet;
    sieves.count(used.pressure, |traffic| traffic.arrived += facts.traffic());
    let above = sieves.pressure(used.pressure, *now);
    if above == 0 || used.sieve == SieveUse::NO_SIEVE {
        return previous;
    }
    // Uses of the same sieve are adjacent, so it scores a packet once.
    let scored = if previous >> SIEVE_SHIFT == used.sieve {
        previous
    } else {
        let score = sieves.score(tables, used.sieve, &facts.source, *now);
        used.sieve << SIEVE_SHIFT | score & (LIST | CONTENDED)
    };
    let list = scored & LIST;
    let is_rejected = above.wrapping_sub(1) > list;
    let observing = used.limit & tables.features().observing;
    let drops = is_rejected && observing == 0 && !verdict.reason.is_of_sieve();
    sieves.count(used.pressure, |traffic| {
        if scored & CONTENDED == 0 {
            traffic.scored = traffic.scored.wrapping_add(1);
        } else {
            traffic.contended = traffic.contended.wrapping_add(1);
        }
        if drops && list == PERMA_BLOCK {
            traffic.iprep_perma += facts.traffic();
        } else if drops {
            traffic.iprep += facts.traffic();
        }
    });
    if drops {
        let reason = if list == PERMA_BLOCK {
            Reason::IprepPerma
        } else {
            Reason::Iprep
        };
        if used.limit == 0 {
            verdict.reason = reason;
        } else {
            verdict.drop_by(reason, used.limit.trailing_zeros());
        }
    } else if is_rejected {
        verdict.would_drop |= observing;
    }
    scored
}

/// Stands in for a result of [`sift_by`]: no sieve has scored the packet yet.
pub const NOT_SCORED: u32 = u32::MAX;

/// The position of the sieve's number, above its score.
const SIEVE_SHIFT: u32 = 16;
