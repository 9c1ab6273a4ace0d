//! The stage behind the entry for packets of banned sources: it counts them for the ban.
//!
//! It is a stage of its own, so that packets of other sources pay nothing for it, not even in the
//! entry's stack.

use super::{Outline, Pipeline, Progress, Workspace};
use crate::{
    ban::BanMatch, clock::Clock, offender::OffenderStore, packet::Facts, policy::Tables,
    reason::Reason, reputation::Reputation, verdict::Verdict,
};

impl<C, T, B, O, R> Pipeline<'_, C, T, B, O, R>
where
    C: Clock,
    T: Tables,
    B: Outline,
    O: OffenderStore,
    R: Reputation,
{
    /// Counts the dropped packet as a hit of the ban that its source is under.
    #[inline(always)]
    pub(super) fn count_hit(&self, workspace: &mut Workspace<B::Location>) -> Progress {
        let facts = &workspace.packet.facts;
        let key = workspace.banned_as.key(&facts.source);
        self.reputation.count_hit(&key, facts.traffic());
        Progress::Decided
    }
}

impl<Location> Workspace<Location> {
    /// Notes that the packet is dropped for a ban, with only the facts that the stage needs.
    #[inline(always)]
    pub(super) const fn meet_ban(&mut self, facts: &Facts, banned_as: BanMatch) {
        self.verdict = Verdict::without_limits(Reason::Banned);
        self.packet.facts.source = facts.source;
        self.packet.facts.length = facts.length;
        self.packet.facts.packets = facts.packets;
        self.banned_as = banned_as;
    }
}
