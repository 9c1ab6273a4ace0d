//! The stage of names: selects the limits that count the packet by its DNS question.

use super::{DecisionSteps, Pipeline, Progress, Scratch};
use crate::{
    clock::Clock,
    dns::{Message, NameLoops, match_question, unreadable},
    offender::OffenderTable,
    packet::Datagram,
    policy::{Tables, record_overrides, with_rates},
    reason::Reason,
    source_tables::SourceTables,
    table::WhenFull,
    verdict::Verdict,
};
#[cfg(not(target_arch = "bpf"))]
use crate::{dns::match_frame, packet::Frame};

impl<C, T, B, O, R> Pipeline<'_, C, T, B, O, R>
where
    C: Clock,
    T: Tables,
    B: DecisionSteps,
    O: OffenderTable,
    R: SourceTables,
{
    /// Selects the limits that count the current packet by its question, from the policy's
    /// entry in scratch memory. A limit that blocks its source drops it. An unreadable question
    /// might belong to any bucket of each limit: the packet is malformed, unless these limits only
    /// observe.
    #[inline(always)]
    pub(super) fn select_by_question(&self, scratch: &mut Scratch<B::Location>) -> Progress {
        let by_name = self.tables.features().by_name;
        if !scratch.needs_question(self.tables) {
            return Progress::Undecided;
        }
        let enforcing = by_name & !self.tables.features().observing;
        if scratch.packet.name_match.unreadable != 0 && scratch.verdict.matched & enforcing != 0 {
            scratch.verdict = Verdict::without_limits(Reason::MalformedDns);
            return Progress::Decided;
        }
        self.exclude_cached_name(scratch);
        self.select_by_name(scratch, by_name)
    }

    /// Drops limits on new names from the matched limits if the packet's name is cached.
    #[inline(always)]
    fn exclude_cached_name(&self, scratch: &mut Scratch<B::Location>) {
        let features = self.tables.features();
        let Scratch {
            packet, verdict, ..
        } = scratch;
        let new = verdict.matched & packet.name_match.limits & features.by_new_name;
        if new != 0
            && self
                .source_tables
                .is_name_cached(features, packet.name_match.name, packet.now)
        {
            packet.name_match.limits &= !features.by_new_name;
        }
    }

    /// Adds the passing packet's name to the cached names, if a limit on new names had a token for
    /// it. So these limits bound the number of new names regardless of the sender.
    #[inline(always)]
    pub(super) fn enter_name(&self, scratch: &mut Scratch<B::Location>) -> Progress {
        let features = self.tables.features();
        let Scratch {
            packet, verdict, ..
        } = scratch;
        let mut charged = verdict.matched & !verdict.would_drop & features.by_new_name;
        if features.when_full == WhenFull::PassNew as u32 {
            // An observing limit does not say whether there was room for a bucket, and without a
            // bucket it bounds nothing.
            charged &= !features.observing;
        }
        if charged != 0 && verdict.reason == Reason::WithinLimits {
            self.source_tables
                .enter_name(features, packet.name_match.name, packet.now);
        }
        Progress::Undecided
    }

    /// Keeps the limits of `by_name` that count the packet's name, and all other limits. A kept limit
    /// that blocks the packet's source drops the packet.
    #[inline(always)]
    pub(super) fn select_by_name(
        &self,
        scratch: &mut Scratch<B::Location>,
        by_name: u64,
    ) -> Progress {
        let features = self.tables.features();
        let Scratch {
            packet, verdict, ..
        } = scratch;
        record_overrides(self.tables, &packet.facts.source, &mut packet.name_match);
        // Opaque, so that the verifier walks the rest once for all results.
        let counting = self.tables.opaque(packet.name_match.limits);
        let matched = verdict.matched & (counting | !by_name);
        let listed = packet.class.listed();
        // Later stages ask the others.
        let counting = matched & features.of_every_standing() & features.of_every_tcp_state();
        if listed != 0 && verdict.block(self.tables, listed, counting) {
            verdict.matched = matched;
            return Progress::Decided;
        }
        let matched = with_rates(self.tables, &packet.class, &packet.name_match, matched);
        self.go_on_with(scratch, matched)
    }
}

impl<Location> Scratch<Location> {
    /// Whether the packet's question matters; otherwise it need not be read.
    #[must_use]
    #[inline(always)]
    pub fn needs_question<T: Tables>(&self, tables: &T) -> bool {
        // These limits count nothing but datagrams with a header.
        self.verdict.matched & tables.features().by_name != 0
    }

    /// The position of the UDP datagram's content in its frame.
    #[must_use]
    #[inline(always)]
    pub const fn datagram(&self) -> Datagram {
        self.packet.facts.datagram
    }

    /// Records the policy's entry for the packet's question, which is in `message`; `None`: not even
    /// a header could be read.
    #[inline(always)]
    pub fn record_question<T: Tables, L: NameLoops>(
        &mut self,
        tables: &T,
        message: Option<&mut Message>,
        loops: &L,
    ) {
        match message {
            Some(message) => match_question(tables, message, loops, &mut self.packet.name_match),
            None => self.packet.name_match = unreadable(tables),
        }
    }

    /// Finds the packet's question in its frame, if it matters.
    #[cfg(not(target_arch = "bpf"))]
    pub fn find_question<F: Frame, T: Tables>(&mut self, frame: &F, tables: &T) {
        if !self.needs_question(tables) {
            return;
        }
        self.packet.name_match = match_frame(tables, frame, self.datagram());
    }
}
