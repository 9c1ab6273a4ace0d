//! The stage of server names: only those limits go on that count the packet by the name that its
//! connection's client asks for.

use super::{Outline, Pipeline, Progress, Workspace};
use crate::{
    clock::Clock, dns::nothing, offender::OffenderStore, policy::Tables, reputation::Reputation,
    server_name::Flow,
};
#[cfg(not(target_arch = "bpf"))]
use crate::{
    connection::Ends,
    dns::{InlineNameLoops, find_slot},
};

impl<C, T, B, O, R> Pipeline<'_, C, T, B, O, R>
where
    C: Clock,
    T: Tables,
    B: Outline,
    O: OffenderStore,
    R: Reputation,
{
    /// Leaves the limits that count the workspace's packet by its connection's name, of which the
    /// workspace has what the policy says. One that blocks its source drops it.
    #[inline(always)]
    pub(super) fn select_by_server_name(&self, workspace: &mut Workspace<B::Location>) -> Progress {
        let by_server_name = self.tables.shape().by_server_name;
        if !workspace.asks_for_server_name(self.tables) {
            return Progress::Undecided;
        }
        self.select_by_name(workspace, by_server_name)
    }
}

impl<Location> Workspace<Location> {
    /// Returns whether the name of the packet's connection matters: if not, nobody need look for it.
    #[inline(always)]
    pub fn asks_for_server_name<T: Tables>(&self, tables: &T) -> bool {
        // They count nothing but TCP segments.
        self.verdict.matched & tables.shape().by_server_name != 0
    }

    /// Notes what the policy says of the name of the packet's connection; `None`: nobody has noted the
    /// connection. `find_slot` is [`find_slot`](crate::dns::find_slot) in these tables.
    #[inline(always)]
    pub fn note_flow<T: Tables>(
        &mut self,
        tables: &T,
        flow: Option<&Flow>,
        find_slot: impl FnOnce(u64) -> u32,
    ) {
        let asked = &mut self.packet.asked;
        *asked = nothing(tables);
        if let Some(flow) = flow {
            asked.limits = flow.limits_of(tables.shape().server_names);
            asked.zone = flow.name;
            let shape = tables.shape();
            if shape.by_server_name & shape.overridden_by_name != 0
                && let Some(slot) = tables.name(find_slot(flow.name))
            {
                asked.overrides = slot.overrides;
            }
        }
    }

    /// Finds the packet's connection, if its name matters.
    #[cfg(not(target_arch = "bpf"))]
    pub fn find_flow<T: Tables, R: Reputation>(&mut self, tables: &T, reputation: &R) {
        if self.asks_for_server_name(tables) {
            let flow = reputation.flow(&Ends::of_facts(&self.packet.facts));
            self.note_flow(tables, flow.as_ref(), |number| {
                find_slot(tables, number, &InlineNameLoops)
            });
        }
    }
}
