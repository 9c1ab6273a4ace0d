//! The stage of standing: a packet's source gives way to sources for which limits reserve a part of
//! their buckets.

use super::{
    DecisionSteps, Pipeline, Progress, Scratch,
    indices::{bit, contains, limit_indices},
    reserves::reserve_of,
    strictest::{NEVER, RESERVED},
};
use crate::{
    classified_packet::ClassifiedPacket,
    clock::Clock,
    offender::OffenderTable,
    policy::{Features, Tables},
    reason::Reason,
    source_tables::SourceTables,
    sources::StandingTable as _,
    standing::{HashedSource, SourceId, Standing, Tick},
};

impl<C, T, B, O, R> Pipeline<'_, C, T, B, O, R>
where
    C: Clock,
    T: Tables,
    B: DecisionSteps,
    O: OffenderTable,
    R: SourceTables,
{
    /// Looks up the source's standing, selects the limits that count the packet, and drops it if it
    /// would take a reserve.
    ///
    /// Without a shortage the standing rarely matters, and with very many sources its entry is in
    /// no CPU cache. So the look-up is skipped then, unless the visit is to be recorded: limits that
    /// reserve are charged as for an unknown source, against which they reserve most, and if
    /// one of them refuses, the packet comes back to this stage.
    ///
    /// If an unknown source turns out to have retried, the stage runs again.
    #[inline(always)]
    pub(super) fn check_standing(&self, scratch: &mut Scratch<B::Location>) -> Progress {
        let features = self.tables.features();
        if !self.needs_standing(scratch) {
            scratch.verdict.skip_standing();
            return Progress::Undecided;
        }
        let Scratch {
            packet,
            verdict,
            source,
            ..
        } = scratch;
        *source = self.source_of(packet);
        let standing = match verdict.standing() {
            Some(standing) => standing,
            None => self.standing_of(packet, source),
        };
        // Otherwise the verifier would walk the rest once for each way to find the standing.
        let number = self.tables.opaque(standing as u64);
        if number >= Standing::COUNT as u64 {
            // Never happens.
            return Progress::Decided;
        }
        let standing = Standing::of_number((number & 7) as u32);
        verdict.set_standing(standing);
        let matched = self
            .tables
            .opaque(verdict.matched & features.of_standing(standing));
        let listed = packet.class.listed();
        if listed != 0 && verdict.block(self.tables, listed, matched) {
            verdict.matched = matched;
            return Progress::Decided;
        }
        if features.reserving != 0 {
            self.check_reserving(scratch, standing, matched);
            if scratch.refused != 0 {
                if self.is_exempt(scratch) {
                    scratch.exempt();
                    return Progress::Decided;
                }
                let standing_now = self.standing_after_refusal(scratch, standing);
                if standing_now != standing {
                    scratch.verdict.set_standing(standing_now);
                    scratch.verdict.decide_again(features);
                    return Progress::Again;
                }
                if self.may_have_cookie(scratch) {
                    return Progress::Cookie;
                }
                if let Some(progress) = self.refuse_reserved(scratch, matched) {
                    return progress;
                }
            }
        }
        self.go_on_with(scratch, matched)
    }

    /// Drops the packet if an enforcing limit refuses it, and returns the stage's result; `matched`
    /// are the limits that count it. If only observing limits refuse, records that and returns
    /// `None`.
    #[inline(always)]
    pub(super) fn refuse_reserved(
        &self,
        scratch: &mut Scratch<B::Location>,
        matched: u64,
    ) -> Option<Progress> {
        let Scratch {
            strictest, verdict, ..
        } = scratch;
        if let Some(reason) = strictest.reason() {
            verdict.matched = matched;
            verdict.drop_by(reason, strictest.limit_index);
            let limit_index = scratch.strictest.limit_index;
            self.record_refused(scratch, limit_index);
            return Some(self.refuse(scratch, limit_index));
        }
        verdict.would_drop |= scratch.refused;
        None
    }

    /// Whether to look up the standing of the packet's source.
    #[inline(always)]
    fn needs_standing(&self, scratch: &mut Scratch<B::Location>) -> bool {
        let features = self.tables.features();
        let Scratch {
            packet,
            verdict,
            visits,
            ..
        } = scratch;
        // A packet that comes back passes the stages up to the charge again: so none of them may
        // count it.
        verdict.has_met_standing()
            || features.sieve_uses != 0
            || features.reserving & features.observing != 0
            || self.answers_by_standing(verdict.matched)
            || has_connection_reserves(features, packet, verdict.matched)
            || verdict.matched & !features.of_every_standing() != 0
            || packet.class.listed() != 0
            || self.source_tables.sources().is_short(packet.now)
            || visits.is_recorded(&features.standing, Tick::of_ns(packet.now))
    }

    /// Records that the reserving limit at an index refused a packet at its charge. The reason is the
    /// reserve if the packet would have passed without it.
    #[inline(always)]
    pub(super) fn record_reserved_refusal(
        &self,
        scratch: &mut Scratch<B::Location>,
        limit_index: u32,
    ) {
        if scratch.charge(limit_index).plan.is_refused_for_reserve() {
            scratch.verdict.reason = Reason::Reserved;
        }
        if let Some(standing) = scratch.verdict.standing() {
            // A source that must leave a reserve is refused this late only if another CPU was
            // faster. This may be its first try.
            let Scratch { source, packet, .. } = scratch;
            let sources = self.source_tables.sources();
            sources.record_refusal(self.tables.features(), source, standing, packet.now);
        }
    }

    /// Asks the limits of `matched` that reserve something from sources of that standing; records
    /// which refuse, and the strictest enforcing one.
    #[inline(always)]
    fn check_reserving(
        &self,
        scratch: &mut Scratch<B::Location>,
        standing: Standing,
        matched: u64,
    ) {
        let features = self.tables.features();
        scratch.refused = 0;
        scratch.strictest.strictness = 0;
        // A table that leaves the look-up of a single bucket to its update must not do so here.
        scratch.search.single = 0;
        self.record_reserves(scratch, standing, matched & features.reserving);
        let limits = self.tables.opaque(scratch.passing) & features.reserving;
        for limit_index in limit_indices(self.tables) {
            if !contains(limits, limit_index) {
                continue;
            }
            let is_moving = features.is_moving(limit_index);
            let strictness = self
                .buckets
                .prepare(self.tables, scratch, limit_index, is_moving);
            let strictness = match self.tables.opaque(strictness) {
                0 if scratch.charge(limit_index).plan.passes_above_own_reserve() => continue,
                0 => RESERVED,
                strictness => strictness,
            };
            scratch.passing &= !bit(limit_index);
            // A packet that never fits makes no shortage; the stage that charges says so.
            if strictness != NEVER {
                scratch.refused |= bit(limit_index);
                if !contains(features.observing, limit_index) {
                    scratch.strictest.consider(limit_index, strictness);
                }
            }
        }
    }

    /// Records the reserve of each of `limits`, and asks only limits with one. It is a loop of its
    /// own, because the verifier walks each round of two loops once, but the rounds of one loop
    /// once for each path through both.
    #[inline(always)]
    fn record_reserves(&self, scratch: &mut Scratch<B::Location>, standing: Standing, limits: u64) {
        scratch.passing = 0;
        for limit_index in limit_indices(self.tables) {
            if contains(limits, limit_index) {
                let rate_index = scratch.packet.rate_index(self.tables, limit_index);
                let reserve = reserve_of(self.tables, limit_index, rate_index, standing);
                scratch.charge(limit_index).plan.reserve = reserve;
                if reserve != 0 {
                    scratch.passing |= bit(limit_index);
                }
            }
        }
    }

    /// Returns the standing of a packet's source, and records its visit unless a list proves it.
    #[inline(always)]
    fn standing_of(&self, packet: &ClassifiedPacket, source: &HashedSource) -> Standing {
        if packet.class.is_proven() {
            return Standing::Proven;
        }
        let sources = self.source_tables.sources();
        sources.visit(self.tables.features(), source, packet.now)
    }

    /// Records that a reserving limit refused the packet. Returns the standing that its source has
    /// now; only an unknown source's may change.
    #[inline(always)]
    fn standing_after_refusal(
        &self,
        scratch: &Scratch<B::Location>,
        standing: Standing,
    ) -> Standing {
        let Scratch { source, packet, .. } = scratch;
        let sources = self.source_tables.sources();
        let now = sources.refused(self.tables.features(), source, standing, packet.now);
        if standing == Standing::Unknown {
            now
        } else {
            standing
        }
    }

    /// Returns the packet's source; [`HashedSource::NONE`]: a list proves it, so its record is not needed.
    #[inline(always)]
    fn source_of(&self, packet: &ClassifiedPacket) -> HashedSource {
        let features = self.tables.features();
        if packet.class.is_proven() {
            return HashedSource::NONE;
        }
        let source = SourceId::new(&features.standing, &packet.facts.source);
        HashedSource::new(&features.hash_key, source)
    }
}

/// Whether the source's standing decides which connections the limits in `matched` let in.
#[inline(always)]
fn has_connection_reserves(features: &Features, packet: &ClassifiedPacket, matched: u64) -> bool {
    let mut limits = features.reserving_connections;
    if packet.facts.is_first_segment() || matched & features.named_connections() != 0 {
        limits |= features.queueing;
    }
    matched & limits != 0
}
