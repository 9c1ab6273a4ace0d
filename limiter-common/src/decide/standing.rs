//! The stage of standing: a packet's source gives way to sources for which limits reserve a part of
//! their buckets.

use super::{
    Outline, Pipeline, Progress, Workspace,
    indices::{bit, contains, limit_indices},
    reserves::reserve_of,
    strictest::{NEVER, RESERVED},
};
use crate::{
    clock::Clock,
    judged::Packet,
    offender::OffenderStore,
    policy::{Shape, Tables},
    reason::Reason,
    reputation::Reputation,
    sources::StandingStore as _,
    standing::{SourceId, Standing, Tick},
};

impl<C, T, B, O, R> Pipeline<'_, C, T, B, O, R>
where
    C: Clock,
    T: Tables,
    B: Outline,
    O: OffenderStore,
    R: Reputation,
{
    /// Looks up the source's standing, selects the limits that count the packet, and drops it if it
    /// would take a reserve.
    ///
    /// Without a shortage the standing rarely matters, and with very many sources its entry is in
    /// no CPU cache. So the look-up is skipped then, unless the visit is to be noted: limits that
    /// reserve are charged as for an unknown source, against which they reserve most, and if
    /// one of them refuses, the packet comes back to this stage.
    ///
    /// If an unknown source turns out to have retried, the stage runs again.
    #[inline(always)]
    pub(super) fn give_way(&self, workspace: &mut Workspace<B::Location>) -> Progress {
        let shape = self.tables.shape();
        if !self.asks_for_standing(workspace) {
            workspace.verdict.skip_standing();
            return Progress::Undecided;
        }
        let Workspace {
            packet, verdict, ..
        } = workspace;
        let standing = match verdict.standing() {
            Some(standing) => standing,
            None => self.standing_of(packet),
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
            .opaque(verdict.matched & shape.of_standing(standing));
        let listed = packet.class.listed();
        if listed != 0 && verdict.block(self.tables, listed, matched) {
            verdict.matched = matched;
            return Progress::Decided;
        }
        if shape.reserving != 0 {
            self.ask_reserving(workspace, standing, matched);
            if workspace.refused != 0 {
                if self.is_exempt(workspace) {
                    workspace.exempt();
                    return Progress::Decided;
                }
                let standing_now = self.standing_after_refusal(&workspace.packet, standing);
                if standing_now != standing {
                    workspace.verdict.set_standing(standing_now);
                    workspace.verdict.decide_again(shape);
                    return Progress::Again;
                }
                if self.may_have_cookie(workspace) {
                    return Progress::Cookie;
                }
                if let Some(progress) = self.refuse_reserved(workspace, matched) {
                    return progress;
                }
            }
        }
        self.go_on_with(workspace, matched)
    }

    /// Drops the packet if an enforcing limit refuses it, and returns the stage's result; `matched`
    /// are the limits that count it. If only observing limits refuse, notes that and returns
    /// `None`.
    #[inline(always)]
    pub(super) fn refuse_reserved(
        &self,
        workspace: &mut Workspace<B::Location>,
        matched: u64,
    ) -> Option<Progress> {
        let Workspace {
            strictest, verdict, ..
        } = workspace;
        if let Some(reason) = strictest.reason() {
            verdict.matched = matched;
            verdict.drop_by(reason, strictest.limit_index);
            let limit_index = workspace.strictest.limit_index;
            self.record_refused(workspace, limit_index);
            return Some(self.refuse(workspace, limit_index));
        }
        verdict.would_drop |= workspace.refused;
        None
    }

    /// Whether to look up the standing of the packet's source.
    #[inline(always)]
    fn asks_for_standing(&self, workspace: &mut Workspace<B::Location>) -> bool {
        let shape = self.tables.shape();
        let Workspace {
            packet,
            verdict,
            visits,
            ..
        } = workspace;
        // A packet that comes back passes the stages up to the charge again: so none of them may
        // count it.
        verdict.has_met_standing()
            || shape.sieve_uses != 0
            || shape.reserving & shape.observing != 0
            || self.answers_by_standing(verdict.matched)
            || has_places_by_standing(shape, packet, verdict.matched)
            || verdict.matched & !shape.of_every_standing() != 0
            || packet.class.listed() != 0
            || self.reputation.sources().is_short(packet.now)
            || visits.is_noted(&shape.standing, Tick::of_ns(packet.now))
    }

    /// Notes that the reserving limit at an index refused a packet at its charge. The reason is the
    /// reserve if the packet would have passed without it.
    #[inline(always)]
    pub(super) fn note_shortage(&self, workspace: &mut Workspace<B::Location>, limit_index: u32) {
        if workspace.charge(limit_index).plan.is_refused_for_reserve() {
            workspace.verdict.reason = Reason::Reserved;
        }
        if let Some(standing) = workspace.verdict.standing() {
            // A source that must leave a reserve is refused this late only if another CPU was
            // faster. This may be its first try.
            let (shape, packet) = (self.tables.shape(), &workspace.packet);
            let (sources, source) = (self.reputation.sources(), self.source_of(packet));
            sources.note_refused(shape, source, standing, packet.now);
        }
    }

    /// Asks the limits of `matched` that reserve something from sources of that standing; notes
    /// which refuse, and the strictest enforcing one.
    #[inline(always)]
    fn ask_reserving(
        &self,
        workspace: &mut Workspace<B::Location>,
        standing: Standing,
        matched: u64,
    ) {
        let shape = self.tables.shape();
        workspace.refused = 0;
        workspace.strictest.strictness = 0;
        // A store that leaves the look-up of a single bucket to its update must not do so here.
        workspace.search.single = 0;
        self.note_reserves(workspace, standing, matched & shape.reserving);
        let limits = self.tables.opaque(workspace.asked) & shape.reserving;
        for limit_index in limit_indices(self.tables) {
            if !contains(limits, limit_index) {
                continue;
            }
            let is_moving = shape.is_moving(limit_index);
            let strictness = self
                .buckets
                .prepare(self.tables, workspace, limit_index, is_moving);
            let strictness = match self.tables.opaque(strictness) {
                0 if workspace.charge(limit_index).plan.leave_reserve() => continue,
                0 => RESERVED,
                strictness => strictness,
            };
            workspace.asked &= !bit(limit_index);
            // A packet that never fits makes no shortage; the stage that charges says so.
            if strictness != NEVER {
                workspace.refused |= bit(limit_index);
                if !contains(shape.observing, limit_index) {
                    workspace.strictest.consider(limit_index, strictness);
                }
            }
        }
    }

    /// Notes the reserve of each of `limits`, and asks only limits with one. It is a loop of its
    /// own, because the verifier walks each round of two loops once, but the rounds of one loop
    /// once for each path through both.
    #[inline(always)]
    fn note_reserves(
        &self,
        workspace: &mut Workspace<B::Location>,
        standing: Standing,
        limits: u64,
    ) {
        workspace.asked = 0;
        for limit_index in limit_indices(self.tables) {
            if contains(limits, limit_index) {
                let rate_index = workspace.packet.rate_index(self.tables, limit_index);
                let reserve = reserve_of(self.tables, limit_index, rate_index, standing);
                workspace.charge(limit_index).plan.reserve = reserve;
                if reserve != 0 {
                    workspace.asked |= bit(limit_index);
                }
            }
        }
    }

    /// Returns the standing of a packet's source, and notes its visit unless a list proves it.
    #[inline(always)]
    pub(super) fn standing_of(&self, packet: &Packet) -> Standing {
        if packet.class.is_proven() {
            return Standing::Proven;
        }
        let (sources, source) = (self.reputation.sources(), self.source_of(packet));
        sources.visit(self.tables.shape(), source, packet.now)
    }

    /// Notes that a reserving limit refused the packet. Returns the standing that its source has
    /// now; only an unknown source's may change.
    #[inline(always)]
    fn standing_after_refusal(&self, packet: &Packet, standing: Standing) -> Standing {
        let (sources, source) = (self.reputation.sources(), self.source_of(packet));
        let now = sources.refused(self.tables.shape(), source, standing, packet.now);
        if standing == Standing::Unknown {
            now
        } else {
            standing
        }
    }

    #[inline(always)]
    fn source_of(&self, packet: &Packet) -> SourceId {
        SourceId::new(&self.tables.shape().standing, &packet.facts.source)
    }
}

/// Whether the source's standing decides which connections the limits in `matched` let in.
#[inline(always)]
fn has_places_by_standing(shape: &Shape, packet: &Packet, matched: u64) -> bool {
    let mut limits = shape.reserving_places;
    if packet.facts.is_first_segment() || matched & shape.named_connections() != 0 {
        limits |= shape.queueing;
    }
    matched & limits != 0
}
