//! The stage behind the entry for packets of banned sources: it counts them for the ban.
//!
//! It is a stage of its own, so that packets of other sources pay nothing for it, not even in the
//! entry's stack.

use super::{DecisionSteps, Pipeline, Progress, Scratch};
use crate::{
    ban::BanMatch, clock::Clock, offender::OffenderTable, packet::Facts, policy::Tables,
    reason::Reason, source_tables::SourceTables, verdict::Verdict,
};

impl<C, T, B, O, R> Pipeline<'_, C, T, B, O, R>
where
    C: Clock,
    T: Tables,
    B: DecisionSteps,
    O: OffenderTable,
    R: SourceTables,
{
    /// Counts the dropped packet as a hit of the ban that its source is under.
    #[inline(always)]
    pub(super) fn count_hit(&self, scratch: &mut Scratch<B::Location>) -> Progress {
        let facts = &scratch.packet.facts;
        let key = scratch.banned_as.key(&facts.source);
        self.source_tables.count_hit(&key, facts.traffic());
        Progress::Decided
    }
}

impl<Location> Scratch<Location> {
    /// Records that the packet is dropped for a ban, with only the facts that the stage needs.
    #[inline(always)]
    pub(super) const fn meet_ban(&mut self, facts: &Facts, banned_as: BanMatch) {
        self.verdict = Verdict::without_limits(Reason::Banned);
        self.packet.facts.source = facts.source;
        self.packet.facts.length = facts.length;
        self.packet.facts.packets = facts.packets;
        self.banned_as = banned_as;
    }
}
