//! Follows live flows: keeps each flow's outcome until the flow is over.
//!
//! [`Reader`] alone suffices to list the names of flows. But a program that charges a live flow to a name must not let
//! the client change the name later, and must re-evaluate flows when the relevant names change. So outcomes are kept
//! here:
//!
//! * The first name stands. Later bytes of the flow do not change it.
//! * Over TCP a sender has one byte for each position of its stream. If a client sends a different byte at a position
//!   already read, the server may take either: the flow is *contradictory*, and has no name. So the bytes behind an
//!   outcome are kept, and compared with retransmissions.
//! * A second hello of TLS must have the name of the first, or its connection is contradictory, too.
//! * Over TCP a flow without a name stays without one. Over UDP it does not: a server does not answer a datagram that
//!   it cannot decrypt, so its client could send one first, and then any name.
//! * TCP and UDP share neither room nor budget. Anyone can forge datagrams, but forged datagrams take nothing from
//!   connections.
//! * Memory and work are bounded for any input. A piece beyond the budget is not read. A client has a part of the
//!   budget, so a few clients that send a hello byte by byte leave the rest to others. Over UDP this prevents no
//!   attack: a sender with forged sources may spend all.

use crate::{
    budget::{Budgets, ExhaustedBudget},
    first_bytes::FirstBytesCache,
    flow::{Flow, Protocol, Segment},
    name::Name,
    outcome::{FoundName, NoName, Outcome},
    reader::{DiscardCounts, Reader},
    settings::Settings,
    table::Table,
};

/// The bounds of a [`Follower`], for each of the two protocols.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FollowerSettings {
    /// The bounds for incomplete flows.
    pub reader: Settings,
    /// The most flows with a kept outcome; at least one.
    pub flows: u32,
    /// The most bytes of their names; at least the bytes of one.
    pub name_bytes: usize,
    /// The most bytes of connections kept for comparison with retransmissions; at least the bytes of one.
    pub first_bytes: usize,
    /// The number of pieces read in a second. One client, which is an address or a /64 of IPv6, gets a sixteenth. A
    /// tenth of each may come at once.
    pub pieces_a_second: u32,
}

impl Default for FollowerSettings {
    /// Room for 131072 flows with names of 64 bytes, for half as much as a reader alone keeps, and for the longest
    /// hellos of 1.6 seconds at the full budget.
    fn default() -> Self {
        let reader = Settings::default();
        Self {
            reader: Settings {
                flows: reader.flows / 2,
                bytes: reader.bytes / 2,
                ..reader
            },
            flows: 1 << 17,
            name_bytes: 1 << 23,
            first_bytes: 1 << 26,
            pieces_a_second: 10_000,
        }
    }
}

/// A change of a flow's outcome.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// The flow asks for a name.
    Named(Flow, FoundName),
    /// The flow has no name, and will have none. If it is [contradictory](NoName::Contradictory), its earlier name, if
    /// any, no longer stands.
    Nameless(Flow, NoName),
    /// The flow's outcome was evicted for newer flows: the flow is unknown again.
    GaveWay(Flow),
}

/// Counters of all pieces, for one protocol.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PieceCounts {
    /// Pieces read.
    pub pieces: u64,
    /// Pieces skipped because the budget was spent.
    pub overrun: u64,
    /// Flows with a name.
    pub named: u64,
    /// Outcomes without a name, by the numbers of [`NoName::ALL`].
    pub nameless: [u64; NoName::ALL.len()],
    /// Outcomes evicted while their flows were alive.
    pub gave_way: u64,
}

/// Follows live flows.
#[derive(Debug)]
pub struct Follower {
    tcp: ProtocolFlows,
    udp: ProtocolFlows,
}

/// The flows of one protocol.
#[derive(Debug)]
struct ProtocolFlows {
    settings: FollowerSettings,
    reader: Reader,
    budgets: Budgets,
    /// The name of each flow; `None`: no name.
    kept: Table<Option<Name>>,
    /// The bytes of the names.
    name_bytes: usize,
    /// The bytes behind each outcome; unused over UDP.
    first_bytes: FirstBytesCache,
    followed: PieceCounts,
}

impl Follower {
    /// Makes a follower that has seen nothing.
    #[must_use]
    pub fn new(settings: FollowerSettings) -> Self {
        Self {
            tcp: ProtocolFlows::new(settings),
            udp: ProtocolFlows::new(settings),
        }
    }

    /// Takes a piece of a flow, as [`Reader::feed`] does, and reports changes by `tell`, in the order in which the
    /// caller must apply them.
    ///
    /// A piece of TCP names its flow only if a server accepts it as a part of the connection. So the caller must give
    /// the number of the connection's first byte, or the flow gets no name, and must pass on only segments of
    /// established connections with a correct checksum. Otherwise forgers would name other clients' flows, and clients
    /// would name their own by segments that the server drops.
    ///
    /// Returns whether the client is to blame if its flow has no outcome now: it has not sent enough, or more than its
    /// own share of the budget. `false`: all clients together have spent the budget.
    pub fn feed(
        &mut self,
        now_ns: u64,
        flow: Flow,
        segment: Segment<'_>,
        tell: impl FnMut(Change),
    ) -> bool {
        let side = self.side(flow.protocol);
        side.feed(now_ns, flow, segment, tell) != Err(ExhaustedBudget::OfAll)
    }

    /// Takes a segment of a connection's second hello; `first` is the number of the hello's first byte. The name of the
    /// first hello must be known. Returns the bytes of the second hello once they are read, if it has the same name;
    /// [`NoName::Contradictory`]: it has another name, or none that can be read. `None`: the hello is incomplete, or
    /// the name of the first hello has been evicted.
    pub fn feed_second_hello(
        &mut self,
        now_ns: u64,
        flow: Flow,
        first: u32,
        (sequence, payload): (u32, &[u8]),
    ) -> Option<Result<&[u8], NoName>> {
        let segment = Segment::Tcp {
            sequence,
            first: Some(first),
            payload,
        };
        self.side(flow.protocol)
            .feed_second_hello(now_ns, flow, segment)
    }

    /// Removes a flow that is over.
    pub fn end(&mut self, flow: &Flow) {
        let side = self.side(flow.protocol);
        side.reader.give_up(flow);
        side.forget(flow);
    }

    /// Whether a flow's outcome is kept.
    #[must_use]
    pub fn is_known(&self, flow: &Flow) -> bool {
        self.of(flow.protocol).kept.contains(flow)
    }

    /// The first bytes of a connection, from which its outcome was read, as long as they are kept. Retransmissions at
    /// their positions must be the same.
    #[must_use]
    pub fn first_bytes(&self, flow: &Flow) -> &[u8] {
        self.of(flow.protocol).first_bytes.bytes(flow)
    }

    /// The flows with a kept outcome, and their names. When the relevant names change, the caller re-evaluates these
    /// flows.
    pub fn flows(&self) -> impl Iterator<Item = (&Flow, Option<&Name>)> {
        let sides = [&self.tcp, &self.udp].into_iter();
        let kept = sides.flat_map(|side| side.kept.iter());
        kept.map(|(flow, name)| (flow, name.as_ref()))
    }

    /// The counters of a protocol's pieces.
    #[must_use]
    pub const fn followed(&self, protocol: Protocol) -> PieceCounts {
        self.of(protocol).followed
    }

    /// The counters of a protocol's flows that were discarded while incomplete.
    #[must_use]
    pub const fn forgotten(&self, protocol: Protocol) -> DiscardCounts {
        self.of(protocol).reader.forgotten()
    }

    /// The total of allocated memory, in bytes.
    #[must_use]
    pub fn memory(&self) -> usize {
        self.tcp.memory() + self.udp.memory()
    }

    const fn of(&self, protocol: Protocol) -> &ProtocolFlows {
        match protocol {
            Protocol::Tcp => &self.tcp,
            Protocol::Udp => &self.udp,
        }
    }

    const fn side(&mut self, protocol: Protocol) -> &mut ProtocolFlows {
        match protocol {
            Protocol::Tcp => &mut self.tcp,
            Protocol::Udp => &mut self.udp,
        }
    }
}

impl ProtocolFlows {
    fn new(settings: FollowerSettings) -> Self {
        Self {
            settings,
            reader: Reader::new(settings.reader),
            budgets: Budgets::new(settings.pieces_a_second),
            kept: Table::new(),
            name_bytes: 0,
            first_bytes: FirstBytesCache::new(settings.first_bytes),
            followed: PieceCounts::default(),
        }
    }

    fn feed(
        &mut self,
        now_ns: u64,
        flow: Flow,
        segment: Segment<'_>,
        mut tell: impl FnMut(Change),
    ) -> Result<(), ExhaustedBudget> {
        if segment.is_empty() {
            return Ok(());
        }
        if self.kept.contains(&flow) {
            // A retransmission, or a piece that was on its way when the outcome was reported.
            if self.contradicts(&flow, segment) {
                self.followed.nameless[NoName::Contradictory as usize] += 1;
                tell(Change::Nameless(flow, NoName::Contradictory));
            }
            return Ok(());
        }
        let taken = self.budgets.take(now_ns, flow.client);
        if taken.is_err() {
            self.followed.overrun += 1;
            return taken;
        }
        self.followed.pieces += 1;
        let outcome = match segment {
            // Its position in the connection is unknown; it may belong to none.
            Segment::Tcp { first: None, .. } => Some(Outcome::NoName(NoName::NoBeginning)),
            _ => self.reader.feed(now_ns, flow, segment),
        };
        let Some(outcome) = outcome else {
            return Ok(());
        };
        let mut hello = None;
        let (name, change) = match outcome {
            Outcome::Name(found) => {
                self.followed.named += 1;
                hello = found.bytes;
                (Some(found.name.clone()), Change::Named(flow, found))
            }
            Outcome::NoName(reason) => {
                self.followed.nameless[reason as usize] += 1;
                if flow.protocol == Protocol::Udp {
                    return Ok(());
                }
                (None, Change::Nameless(flow, reason))
            }
        };
        if let Segment::Tcp {
            first: Some(first), ..
        } = segment
        {
            let last = self.reader.last();
            let read = hello.and_then(|length| last.get(..length));
            self.first_bytes
                .keep(now_ns, flow, first, read.unwrap_or(last));
        }
        let bytes = length(name.as_ref());
        while let Some((oldest, _)) = self.kept.oldest() {
            let has_room = self.kept.len() < self.settings.flows as usize;
            if has_room && self.name_bytes + bytes <= self.settings.name_bytes {
                break;
            }
            self.forget(&oldest);
            self.followed.gave_way += 1;
            tell(Change::GaveWay(oldest));
        }
        self.name_bytes += bytes;
        self.kept.insert(flow, now_ns, name);
        tell(change);
        Ok(())
    }

    fn feed_second_hello(
        &mut self,
        now_ns: u64,
        flow: Flow,
        segment: Segment<'_>,
    ) -> Option<Result<&[u8], NoName>> {
        let name = self.kept.get(&flow)?.clone();
        if self.budgets.take(now_ns, flow.client).is_err() {
            self.followed.overrun += 1;
            return None;
        }
        self.followed.pieces += 1;
        let read = match self.reader.feed(now_ns, flow, segment)? {
            Outcome::Name(found) if found.is_binding && Some(&found.name) == name.as_ref() => {
                found.bytes
            }
            _ => None,
        };
        let bytes = read.and_then(|bytes| self.reader.last().get(..bytes));
        if bytes.is_none() {
            self.followed.nameless[NoName::Contradictory as usize] += 1;
        }
        Some(bytes.ok_or(NoName::Contradictory))
    }

    /// Whether a piece differs from the bytes behind its flow's outcome.
    fn contradicts(&self, flow: &Flow, segment: Segment<'_>) -> bool {
        match segment {
            Segment::Tcp {
                sequence, payload, ..
            } => !self.first_bytes.agrees(flow, sequence, payload),
            Segment::Udp { .. } => false,
        }
    }

    fn forget(&mut self, flow: &Flow) {
        self.first_bytes.forget(flow);
        if let Some(name) = self.kept.remove(flow) {
            self.name_bytes -= length(name.as_ref());
        }
    }

    fn memory(&self) -> usize {
        self.reader.memory()
            + self.kept.memory()
            + self.name_bytes
            + self.first_bytes.memory()
            + self.budgets.memory()
    }
}

fn length(name: Option<&Name>) -> usize {
    name.map_or(0, |name| name.as_str().len())
}
