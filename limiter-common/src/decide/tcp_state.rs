//! The stage of states: only those limits go on that count segments of connections in the state of
//! the packet's.

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
    /// Leaves the limits that count the workspace's packet by the state of its connection, which the
    /// workspace has. One that blocks its source drops it.
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
        // The verifier walks what follows once, not once for each state.
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

    /// Goes on with those limits only.
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
    /// Returns whether the state of the packet's connection matters: if not, nobody need find it.
    #[inline(always)]
    pub fn asks_for_tcp_state<T: Tables>(&self, tables: &T) -> bool {
        // They count nothing but TCP segments with a header.
        self.verdict.matched & !tables.shape().of_every_tcp_state() != 0
    }

    /// Notes the state of the packet's connection.
    #[inline(always)]
    pub const fn set_tcp_state(&mut self, state: TcpState) {
        self.tcp_state = state;
    }

    /// Notes the same where there is no network stack: segments that begin no connection have the
    /// state `other`.
    #[inline(always)]
    pub const fn assume_tcp_state(&mut self, other: TcpState) {
        self.tcp_state = TcpState::assumed(&self.packet.facts, other);
    }
}
