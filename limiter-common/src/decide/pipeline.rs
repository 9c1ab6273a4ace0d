//! The inputs of stages, and their results.

use super::{DecisionSteps, Scratch};
use crate::{
    clock::Clock,
    offender::{Dropper, OffenderTable},
    policy::Tables,
    reason::Reason,
    source_tables::SourceTables,
};

/// The inputs of a decision besides the frame: the time, the policy, and the state kept of sources.
#[derive(Clone, Copy, Debug)]
pub struct Pipeline<'a, C, T, B, O, R> {
    /// The time.
    pub clock: &'a C,
    /// The policy.
    pub tables: &'a T,
    /// The buckets.
    pub buckets: &'a B,
    /// The record of sources that a limit or a sieve drops.
    pub offenders: &'a O,
    /// Bans, standings, connections and other state kept of sources.
    pub source_tables: &'a R,
}

/// The result of a stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// The verdict in scratch memory is final.
    Decided,
    /// The next stage decides, if there is one.
    Undecided,
    /// The packet is dropped, and the stage of answers decides whether to tell its sender.
    Answer,
    /// The stage of standing decides, perhaps again: the source's standing matters after all, the
    /// source retried, or its DNS cookie proves it. Each happens at most once for a packet.
    Again,
    /// The packet's connection is admitted among the connections of its name.
    Admit,
    /// The packet is refused unless the stage of cookies finds a valid cookie in it.
    Cookie,
}

impl<C, T, B, O, R> Pipeline<'_, C, T, B, O, R>
where
    C: Clock,
    T: Tables,
    B: DecisionSteps,
    O: OffenderTable,
    R: SourceTables,
{
    /// Records the source of a refused packet as an offender, and its key's demand for more of a
    /// shared limit.
    #[inline(always)]
    pub(super) fn record_refused(&self, scratch: &Scratch<B::Location>, limit_index: u32) {
        let Scratch {
            packet, verdict, ..
        } = scratch;
        if self.tables.features().is_shared(limit_index) {
            self.buckets.record_demand(self.tables, packet, limit_index);
        }
        // A source that must give way has not sent too much.
        if verdict.reason != Reason::Reserved {
            let by = Dropper::Budget;
            self.offenders.record(self.tables, packet, limit_index, by);
        }
    }
}
