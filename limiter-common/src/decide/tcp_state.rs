//! The stage of states: selects the limits that count segments of connections in the packet's
//! state.

use super::{Outline, Pipeline, Progress, Workspace};
use crate::{
    clock::Clock, offender::OffenderStore, packet::TcpState, policy::Tables, reason::Reason,
    reputation::Reputation,
};

impl<C, T, B, O, R> Pipeline<'_, C, T, B, O, R>
where
    C: Clock,
    T: Tables,
    B: Outline,
    O: OffenderStore,
    R: Reputation,
{
    /// Selects the limits that count the workspace's packet by its connection's state, which is in
    /// the workspace. A limit that blocks its source drops it.
    #[inline(always)]
    pub(super) fn select_by_state(&self, workspace: &mut Workspace<B::Location>) -> Progress {
        let shape = self.tables.shape();
        if !workspace.asks_for_tcp_state(self.tables) {
            return Progress::Undecided;
        }
        let Workspace {
            packet,
            verdict,
            tcp_state,
            ..
        } = workspace;
        // Opaque, so that the verifier walks the rest once, not once for each state.
        let of_state = shape.of_tcp_state_number(self.tables.opaque(*tcp_state as u64));
        let matched = verdict.matched & of_state;
        let listed = packet.class.listed();
        // The stage of standing asks the others.
        let counting = matched & shape.of_every_standing();
        if listed != 0 && verdict.block(self.tables, listed, counting) {
            verdict.matched = matched;
            return Progress::Decided;
        }
        self.go_on_with(workspace, matched)
    }

    #[inline(always)]
    pub(super) fn go_on_with(
        &self,
        workspace: &mut Workspace<B::Location>,
        matched: u64,
    ) -> Progress {
        let verdict = &mut workspace.verdict;
        verdict.matched = matched;
        if matched != 0 {
            return Progress::Undecided;
        }
        verdict.reason = Reason::Unlimited;
        if self.tables.shape().sieve_uses == 0 {
            Progress::Decided
        } else {
            Progress::Undecided
        }
    }
}

impl<Location> Workspace<Location> {
    /// Whether the state of the packet's connection matters; otherwise it need not be looked up.
    #[inline(always)]
    pub fn asks_for_tcp_state<T: Tables>(&self, tables: &T) -> bool {
        // These limits count nothing but TCP segments with a header.
        self.verdict.matched & !tables.shape().of_every_tcp_state() != 0
    }

    /// Notes the state of the packet's connection.
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
