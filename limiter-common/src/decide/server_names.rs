//! The stage of server names: selects the limits that count the packet by the name that the client
//! of its connection or QUIC flow asks for. Data may be held while the connection's name is
//! unknown: it is dropped, and the client sends it again. Data that contradicts bytes already read
//! at its position is dropped.

use super::{DecisionSteps, Pipeline, Progress, Scratch};
use crate::{
    clock::Clock,
    dns::nothing,
    offender::OffenderTable,
    packet::PROTOCOL_UDP,
    policy::{Features, Tables},
    reason::Reason,
    server_name::{Comparison, FlowRecord, Meaning},
    source_tables::SourceTables,
};
#[cfg(not(target_arch = "bpf"))]
use crate::{
    connection::Ends,
    dns::{InlineNameLoops, find_slot},
    packet::{Frame, Segment, TCP_HEADER, segment},
    server_name::{FirstBytes, SegmentFate, TcpOptions, has_multipath},
};

impl<C, T, B, O, R> Pipeline<'_, C, T, B, O, R>
where
    C: Clock,
    T: Tables,
    B: DecisionSteps,
    O: OffenderTable,
    R: SourceTables,
{
    /// Selects the limits that count the packet by its connection's name, from the policy's entry
    /// in scratch memory. A limit that blocks its source drops it.
    #[inline(always)]
    pub(super) fn select_by_server_name(&self, scratch: &mut Scratch<B::Location>) -> Progress {
        let by_server_name = self.tables.features().by_server_name;
        if !scratch.needs_server_name(self.tables) {
            return Progress::Undecided;
        }
        if scratch.contradicts {
            scratch.verdict.reason = Reason::NameContradicted;
            return Progress::Decided;
        }
        if scratch.is_held {
            scratch.verdict.reason = Reason::NameAwaited;
            return Progress::Decided;
        }
        self.select_by_name(scratch, by_server_name)
    }
}

impl<Location> Scratch<Location> {
    /// Whether the name of the packet's connection matters; otherwise it need not be looked up.
    #[inline(always)]
    pub fn needs_server_name<T: Tables>(&self, tables: &T) -> bool {
        // These limits count nothing but TCP segments and UDP datagrams.
        self.verdict.matched & tables.features().by_server_name != 0
    }

    /// Whether the packet is a UDP datagram, which has a name if it is QUIC.
    #[must_use]
    #[inline(always)]
    pub const fn is_datagram(&self) -> bool {
        self.packet.facts.protocol == PROTOCOL_UDP
    }

    /// Whether the segment marks the end of urgent data: the server reads one byte less than the
    /// connection has.
    #[must_use]
    #[inline(always)]
    pub const fn is_urgent(&self) -> bool {
        self.packet.facts.is_urgent()
    }

    /// Records the policy's entry for the name of the packet's connection or QUIC flow; `None`: no
    /// entry is recorded. Limits on connections count no packet so far, and none is held. `find_slot`
    /// is [`find_slot`](crate::dns::find_slot) in these tables.
    #[inline(always)]
    pub fn record_flow<T: Tables>(
        &mut self,
        tables: &T,
        meaning: Option<&Meaning>,
        find_slot: impl FnOnce(u64) -> u32,
    ) {
        let features = tables.features();
        self.is_held = false;
        self.contradicts = false;
        self.waits = false;
        let name_match = &mut self.packet.name_match;
        *name_match = nothing(tables);
        if let Some(meaning) = meaning {
            name_match.limits = meaning.limits_of(features.server_names) & !features.connections;
            name_match.zone = meaning.name;
            if features.by_server_name & features.overridden_by_name != 0
                && let Some(slot) = tables.name(find_slot(meaning.name))
            {
                name_match.overrides = slot.overrides;
            }
        }
    }

    /// Records that the packet has data of a recorded connection that is not admitted among the connections
    /// of its name. Limits on these connections decide on it as others do on the first segment.
    /// Limits on connections of any name no longer count it.
    #[inline(always)]
    pub const fn request_admission(&mut self, features: &Features, flow: &FlowRecord) {
        self.packet.name_match.limits = flow.meaning.limits_of(features.server_names);
        self.waits = flow.is_waiting();
        self.verdict.matched &= !features.nameless_connections();
    }

    /// Whether data of the packet's connection is held while its name is unknown.
    #[must_use]
    #[inline(always)]
    pub const fn may_be_held(&self, features: &Features) -> bool {
        self.verdict.matched & features.holding != 0
    }

    /// Whether data at already read bytes of its connection may be dropped: a limit that only
    /// observes drops nothing.
    #[must_use]
    #[inline(always)]
    pub const fn may_be_compared(&self, features: &Features) -> bool {
        self.verdict.matched & features.by_server_name & !features.observing != 0
    }

    /// Records that the packet's client has sent different bytes at one position of its connection, or
    /// that the server may read different bytes.
    #[inline(always)]
    pub const fn contradict(&mut self, features: &Features) {
        self.contradicts = self.may_be_compared(features);
    }

    /// Records the result of comparing the packet with the bytes read so far. If these are unknown
    /// here, the packet is held until they are known.
    #[inline(always)]
    pub const fn record_comparison(&mut self, features: &Features, compared: Comparison) {
        match compared {
            Comparison::Same => {}
            Comparison::Other => self.contradict(features),
            Comparison::Unknown => self.is_held = self.may_be_compared(features),
        }
    }

    /// Records that the packet is held.
    #[inline(always)]
    pub const fn hold(&mut self) {
        self.is_held = true;
    }

    /// Whether the packet asks limits on connections of a name for admission.
    #[must_use]
    #[inline(always)]
    pub const fn needs_admission(&self, features: &Features) -> bool {
        self.verdict.matched & features.named_connections() != 0
    }

    /// Finds the packet's connection or QUIC flow, if its name matters.
    #[cfg(not(target_arch = "bpf"))]
    pub fn find_flow<F: Frame, T: Tables, R: SourceTables>(
        &mut self,
        frame: &F,
        tables: &T,
        source_tables: &R,
    ) {
        if !self.needs_server_name(tables) {
            return;
        }
        let features = tables.features();
        let ends = Ends::of_facts(&self.packet.facts);
        let find_slot = |number| find_slot(tables, number, &InlineNameLoops);
        if self.is_datagram() {
            let meaning = source_tables.quic_flow(&ends, self.packet.now);
            self.record_flow(tables, meaning.as_ref(), find_slot);
            return;
        }
        let flow = source_tables.flow(&ends);
        let meaning = flow.as_ref().map(|flow| &flow.meaning);
        self.record_flow(tables, meaning, find_slot);
        let may_be_held = self.may_be_held(features);
        let segment = segment(frame);
        if self.is_first_segment() {
            self.is_held = may_be_held && segment.is_some();
        }
        let Some(flow) = flow else {
            return;
        };
        let is_first = self.is_first_segment();
        if flow.is_contradictory() || self.is_urgent() && !is_first {
            self.contradict(features);
            return;
        }
        let Some(segment) = segment.filter(|_| !is_first) else {
            return;
        };
        if flow.needs_inspection(features, may_be_held) && is_multipath(frame, &segment) {
            self.contradict(features);
            return;
        }
        if flow.is_read() && !(flow.is_hidden() && may_be_held) {
            if flow.needs_admission(features) {
                self.request_admission(features, &flow);
            }
            let first_bytes = || source_tables.first_bytes(&ends);
            let compared = compare(frame, &flow, &segment, first_bytes);
            if compared.is_none_or(|compared| compared == Comparison::Same) {
                if flow.awaits_records()
                    && follow(frame, &ends, &segment, source_tables) != Some(SegmentFate::Passes)
                {
                    self.is_held = self.may_be_compared(features);
                }
            } else if let Some(compared) = compared {
                self.record_comparison(features, compared);
            }
        } else if may_be_held
            && (!segment.is_whole || {
                let numbers = (segment.sequence, segment.payload_length());
                source_tables.hold(&ends, numbers, self.packet.now)
            })
        {
            self.hold();
        }
    }
}

/// Whether a segment has an option of multipath TCP.
#[cfg(not(target_arch = "bpf"))]
fn is_multipath<F: Frame>(frame: &F, segment: &Segment) -> bool {
    let mut options: TcpOptions = [0; _];
    let offsets = segment.start + TCP_HEADER..segment.start + segment.header;
    let mut length = 0;
    for (option, offset) in options.iter_mut().zip(offsets) {
        let [byte] = frame.load(offset).unwrap_or_default();
        *option = byte;
        length += 1;
    }
    has_multipath(&options, length, |at| at)
}

/// Reads the records in a segment behind its connection's hello; `None`: the segment cannot be
/// read.
#[cfg(not(target_arch = "bpf"))]
fn follow<F: Frame, R: SourceTables>(
    frame: &F,
    ends: &Ends,
    segment: &Segment,
    source_tables: &R,
) -> Option<SegmentFate> {
    let payload = segment.start + segment.header;
    let load = |before: u32, length: u32| {
        let mut bytes = [0; 8];
        let offsets = payload + before as usize..;
        for (byte, offset) in bytes.iter_mut().zip(offsets).take(length as usize) {
            [*byte] = frame.load(offset)?;
        }
        Some(u64::from_le_bytes(bytes))
    };
    let numbers = (segment.sequence, segment.payload_length());
    let source_tables = Some(source_tables).filter(|_| segment.is_whole);
    source_tables.and_then(|source_tables| source_tables.follow(ends, numbers, load))
}

/// Compares a segment with the first bytes read of its connection; `None`: it has none of them.
#[cfg(not(target_arch = "bpf"))]
fn compare<F: Frame>(
    frame: &F,
    flow: &FlowRecord,
    segment: &Segment,
    first_bytes: impl FnOnce() -> Option<FirstBytes>,
) -> Option<Comparison> {
    let part = flow.overlap(segment.sequence, segment.payload_length())?;
    let Some(read) = first_bytes().filter(|_| segment.is_whole) else {
        return Some(Comparison::Unknown);
    };
    let payload = segment.start + segment.header;
    let mut copy = FirstBytes::of_frame(frame, payload, &part);
    Some(if read.agrees(&mut copy, &part) {
        Comparison::Same
    } else {
        Comparison::Other
    })
}
