//! The stage of names: selects the limits that count the packet by its DNS question.

use super::{Outline, Pipeline, Progress, Workspace};
use crate::{
    clock::Clock,
    dns::{Message, NameLoops, ask, unreadable},
    offender::OffenderStore,
    packet::Datagram,
    policy::{Tables, note_overrides, with_rates},
    reason::Reason,
    reputation::Reputation,
    table::WhenFull,
    verdict::Verdict,
};
#[cfg(not(target_arch = "bpf"))]
use crate::{dns::ask_frame, packet::Frame};

impl<C, T, B, O, R> Pipeline<'_, C, T, B, O, R>
where
    C: Clock,
    T: Tables,
    B: Outline,
    O: OffenderStore,
    R: Reputation,
{
    /// Selects the limits that count the workspace's packet by its question, from the policy's
    /// entry in the workspace. A limit that blocks its source drops it. An unreadable question
    /// might belong to any bucket of each limit: the packet is malformed, unless these limits only
    /// observe.
    #[inline(always)]
    pub(super) fn select_by_question(&self, workspace: &mut Workspace<B::Location>) -> Progress {
        let by_name = self.tables.shape().by_name;
        if !workspace.asks_for_question(self.tables) {
            return Progress::Undecided;
        }
        let enforcing = by_name & !self.tables.shape().observing;
        if workspace.packet.asked.unreadable != 0 && workspace.verdict.matched & enforcing != 0 {
            workspace.verdict = Verdict::without_limits(Reason::MalformedDns);
            return Progress::Decided;
        }
        self.leave_known(workspace);
        self.select_by_name(workspace, by_name)
    }

    /// Drops limits on new names from the matched limits if the packet's name is known.
    #[inline(always)]
    fn leave_known(&self, workspace: &mut Workspace<B::Location>) {
        let shape = self.tables.shape();
        let Workspace {
            packet, verdict, ..
        } = workspace;
        let asking = verdict.matched & packet.asked.limits & shape.by_new_name;
        if asking != 0
            && self
                .reputation
                .knows_name(shape, packet.asked.name, packet.now)
        {
            packet.asked.limits &= !shape.by_new_name;
        }
    }

    /// Adds the passing packet's name to the known names, if a limit on new names had a token for
    /// it. So these limits bound the number of new names regardless of the sender.
    #[inline(always)]
    pub(super) fn enter_name(&self, workspace: &mut Workspace<B::Location>) -> Progress {
        let shape = self.tables.shape();
        let Workspace {
            packet, verdict, ..
        } = workspace;
        let mut charged = verdict.matched & !verdict.would_drop & shape.by_new_name;
        if shape.when_full == WhenFull::PassNew as u32 {
            // An observing limit does not say whether there was room for a bucket, and without a
            // bucket it bounds nothing.
            charged &= !shape.observing;
        }
        if charged != 0 && verdict.reason == Reason::WithinLimits {
            self.reputation
                .enter_name(shape, packet.asked.name, packet.now);
        }
        Progress::Undecided
    }

    /// Keeps the limits of `by_name` that count the packet's name, and all other limits. A kept limit
    /// that blocks the packet's source drops the packet.
    #[inline(always)]
    pub(super) fn select_by_name(
        &self,
        workspace: &mut Workspace<B::Location>,
        by_name: u64,
    ) -> Progress {
        let shape = self.tables.shape();
        let Workspace {
            packet, verdict, ..
        } = workspace;
        note_overrides(self.tables, &packet.facts.source, &mut packet.asked);
        // Opaque, so that the verifier walks the rest once for all results.
        let counting = self.tables.opaque(packet.asked.limits);
        let matched = verdict.matched & (counting | !by_name);
        let listed = packet.class.listed();
        // Later stages ask the others.
        let counting = matched & shape.of_every_standing() & shape.of_every_tcp_state();
        if listed != 0 && verdict.block(self.tables, listed, counting) {
            verdict.matched = matched;
            return Progress::Decided;
        }
        let matched = with_rates(self.tables, &packet.class, &packet.asked, matched);
        self.go_on_with(workspace, matched)
    }
}

impl<Location> Workspace<Location> {
    /// Whether the packet's question matters; otherwise it need not be read.
    #[must_use]
    #[inline(always)]
    pub fn asks_for_question<T: Tables>(&self, tables: &T) -> bool {
        // These limits count nothing but datagrams with a header.
        self.verdict.matched & tables.shape().by_name != 0
    }

    /// The place of the UDP datagram's content in its frame.
    #[must_use]
    #[inline(always)]
    pub const fn datagram(&self) -> Datagram {
        self.packet.facts.datagram
    }

    /// Notes the policy's entry for the packet's question, which is in `message`; `None`: not even
    /// a header could be read.
    #[inline(always)]
    pub fn note_question<T: Tables, L: NameLoops>(
        &mut self,
        tables: &T,
        message: Option<&mut Message>,
        loops: &L,
    ) {
        match message {
            Some(message) => ask(tables, message, loops, &mut self.packet.asked),
            None => self.packet.asked = unreadable(tables),
        }
    }

    /// Finds the packet's question in its frame, if it matters.
    #[cfg(not(target_arch = "bpf"))]
    pub fn find_question<F: Frame, T: Tables>(&mut self, frame: &F, tables: &T) {
        if !self.asks_for_question(tables) {
            return;
        }
        self.packet.asked = ask_frame(tables, frame, self.datagram());
    }
}
