//! The stage of states: selects the limits that count segments of connections in the packet's
//! state.

use super::{DecisionSteps, Pipeline, Progress, Scratch};
use crate::{
    clock::Clock, offender::OffenderTable, packet::TcpState, policy::Tables, reason::Reason,
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
    /// Selects the limits that count the current packet by its connection's state, which is in
    /// scratch memory. A limit that blocks its source drops it.
    #[inline(always)]
    pub(super) fn select_by_state(&self, scratch: &mut Scratch<B::Location>) -> Progress {
        let features = self.tables.features();
        if !scratch.needs_tcp_state(self.tables) {
            return Progress::Undecided;
        }
        let Scratch {
            packet,
            verdict,
            tcp_state,
            ..
        } = scratch;
        // Opaque, so that the verifier walks the rest once, not once for each state.
        let of_state = features.of_tcp_state_number(self.tables.opaque(*tcp_state as u64));
        let matched = verdict.matched & of_state;
        let listed = packet.class.listed();
        // The stage of standing asks the others.
        let counting = matched & features.of_every_standing();
        if listed != 0 && verdict.block(self.tables, listed, counting) {
            verdict.matched = matched;
            return Progress::Decided;
        }
        self.go_on_with(scratch, matched)
    }

    #[inline(always)]
    pub(super) fn go_on_with(&self, scratch: &mut Scratch<B::Location>, matched: u64) -> Progress {
        let verdict = &mut scratch.verdict;
        verdict.matched = matched;
        if matched != 0 {
            return Progress::Undecided;
        }
        verdict.reason = Reason::Unlimited;
        if self.tables.features().sieve_uses == 0 {
            Progress::Decided
        } else {
            Progress::Undecided
        }
    }
}

impl<Location> Scratch<Location> {
    /// Whether the state of the packet's connection matters; otherwise it need not be looked up.
    #[inline(always)]
    pub fn needs_tcp_state<T: Tables>(&self, tables: &T) -> bool {
        // These limits count nothing but TCP segments with a header.
        self.verdict.matched & !tables.features().of_every_tcp_state() != 0
    }

    /// Records the state of the packet's connection.
    #[inline(always)]
    pub const fn set_tcp_state(&mut self, state: TcpState) {
        self.tcp_state = state;
    }

    /// Assumes the state without a network stack: `other` for all segments but a connection's
    /// first.
    #[inline(always)]
    pub const fn assume_tcp_state(&mut self, other: TcpState) {
        self.tcp_state = TcpState::assumed(&self.packet.facts, other);
    }
}
