//! The stage of connections: a packet that would open one more than a limit allows is dropped.

use super::{Outline, Pipeline, Progress, Workspace};
use crate::{
    clock::Clock,
    connection::{self, Place},
    offender::OffenderStore,
    packet::{FLAG_ACK, FLAG_SYN, Facts},
    policy::Tables,
    reason::Reason,
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
    /// Drops the workspace's packet if it would open a connection and a limit that enforces is full.
    /// The source is not recorded as an offender: it may be forged.
    ///
    /// Segments of open connections are no more of these limits' business: neither are they counted
    /// under them.
    #[inline(always)]
    pub(super) fn limit_connections(&self, workspace: &mut Workspace<B::Location>) -> Progress {
        let shape = self.tables.shape();
        let is_first = workspace.is_first_segment();
        let Workspace { full, verdict, .. } = workspace;
        let enforced = *full & shape.connections & !shape.observing;
        if enforced != 0 {
            verdict.drop_by(Reason::TooManyConnections, enforced.trailing_zeros());
            return Progress::Decided;
        }
        if is_first {
            verdict.would_drop |= *full & shape.connections;
        } else {
            verdict.matched &= !shape.connections;
        }
        if verdict.matched == 0 {
            verdict.reason = Reason::Unlimited;
            if shape.sieve_uses == 0 {
                return Progress::Decided;
            }
        }
        Progress::Undecided
    }
}

impl<Location> Workspace<Location> {
    /// Returns the facts of the packet.
    #[must_use]
    #[inline(always)]
    pub const fn facts(&self) -> &Facts {
        &self.packet.facts
    }

    /// Returns whether the packet, which a limit on connections counts, is the first of a connection.
    #[must_use]
    #[inline(always)]
    pub const fn is_first_segment(&self) -> bool {
        self.packet.facts.tcp_flags & (FLAG_SYN | FLAG_ACK) == FLAG_SYN
    }

    /// Returns those of the limits on connections that count the packet and have no room for another
    /// one. `open` says how many are open at a place.
    #[inline(always)]
    pub fn full_limits<T: Tables>(&self, tables: &T, open: impl Fn(Place) -> u64) -> u64 {
        connection::full(tables, &self.packet, self.verdict.matched, open)
    }

    /// Notes which limits on connections have no room for the connection that the packet would open.
    #[inline(always)]
    pub const fn set_full(&mut self, limits: u64) {
        self.full = limits;
    }

    /// Notes the same, as far as that shows without a network stack: of the first segment.
    #[cfg(not(target_arch = "bpf"))]
    pub fn note_full<T: Tables>(&mut self, tables: &T, open: impl Fn(Place) -> u64) {
        self.full = if self.is_first_segment() {
            self.full_limits(tables, open)
        } else {
            0
        };
    }
}
