//! Packets of TCP connections that the host itself began: no limit and no sieve refuses them.
//!
//! The connection is looked up only behind a refusal, so passing packets pay nothing. Until then
//! they are charged like any other: an empty bucket was emptied by them or by others of the same
//! key.

use super::{DecisionSteps, Pipeline, Scratch};
use crate::{
    clock::Clock, offender::OffenderTable, packet::Transport, policy::Tables, reason::Reason,
    source_tables::SourceTables,
};

impl<C, T, B, O, R> Pipeline<'_, C, T, B, O, R>
where
    C: Clock,
    T: Tables,
    B: DecisionSteps,
    O: OffenderTable,
    R: SourceTables,
{
    /// Whether the current packet, about to be refused, is exempt: it belongs to a connection
    /// that the host began. The first segment of a connection answers nothing.
    #[inline(always)]
    pub(super) fn is_exempt(&self, scratch: &Scratch<B::Location>) -> bool {
        let packet = &scratch.packet;
        self.tables.features().own_connections != 0
            && matches!(packet.facts.transport, Transport::Tcp)
            && !packet.facts.is_first_segment()
            && self.source_tables.is_of_own_connection(packet)
    }
}

impl<Location> Scratch<Location> {
    /// Records that the packet passes because it is exempt. No limit counts it.
    #[inline(always)]
    pub(super) const fn exempt(&mut self) {
        self.verdict.pass_by(Reason::OwnConnection);
        self.verdict.matched = 0;
        self.verdict.would_drop = 0;
    }
}
