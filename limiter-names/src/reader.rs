//! Reads flows, keeping many incomplete ones at a time.

use crate::{
    flow::{Flow, Segment},
    outcome::{FoundName, NoName, Outcome, Stop},
    quic::Quic,
    settings::Settings,
    table::Table,
    tcp::{self, Tcp},
};

/// Reads the names of flows from their first bytes.
#[derive(Debug)]
pub struct Reader {
    settings: Settings,
    table: Table<PendingFlow>,
    /// The memory of the values in the table, in bytes.
    kept_bytes: usize,
    /// Scratch space to put bytes together.
    room: Vec<u8>,
    /// The first bytes of the connection with the latest outcome, as far as they were read.
    last: Vec<u8>,
    forgotten: DiscardCounts,
}

/// Counters of flows that were discarded while incomplete.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DiscardCounts {
    /// Flows discarded because their time was over.
    pub timed_out: u64,
    /// Flows evicted for newer ones.
    pub gave_way: u64,
}

/// An incomplete flow.
#[derive(Debug)]
enum PendingFlow {
    Tcp(Tcp),
    Quic(Quic),
}

impl PendingFlow {
    fn memory(&self) -> usize {
        match self {
            Self::Tcp(tcp) => tcp.memory(),
            Self::Quic(quic) => quic.memory(),
        }
    }
}

impl Reader {
    /// Makes an empty reader.
    #[must_use]
    pub fn new(settings: Settings) -> Self {
        Self {
            settings,
            table: Table::new(),
            kept_bytes: 0,
            room: Vec::new(),
            last: Vec::new(),
            forgotten: DiscardCounts::default(),
        }
    }

    /// Takes a piece of a flow that came at `now_ns`, in nanoseconds of any monotonic clock.
    ///
    /// Returns the flow's outcome once it is known, and removes the flow. The caller must skip later pieces of the
    /// flow, or they count as a new one.
    pub fn feed(&mut self, now_ns: u64, flow: Flow, segment: Segment<'_>) -> Option<Outcome> {
        self.expire(now_ns);
        let read = match segment {
            _ if segment.is_empty() => Err(Stop::More),
            Segment::Tcp {
                sequence,
                first,
                payload,
            } => self.feed_tcp(now_ns, flow, (sequence, first), payload),
            Segment::Udp { payload } => self.feed_udp(now_ns, flow, payload),
        };
        let outcome = match read {
            Ok(found) => Outcome::Name(found),
            Err(Stop::No(reason)) => Outcome::NoName(reason),
            Err(Stop::More) => {
                while self.kept_bytes > self.settings.bytes && self.oldest_gives_way() {}
                return None;
            }
        };
        self.forget(&flow);
        Some(outcome)
    }

    /// The first bytes of the TCP connection with the outcome that [`Self::feed`] returned last: the bytes behind that
    /// outcome.
    pub(crate) fn last(&self) -> &[u8] {
        &self.last
    }

    /// Removes a flow that is over, or will send no more bytes. Returns the reason why it has no name yet; `None`: the
    /// flow is not being read.
    pub fn give_up(&mut self, flow: &Flow) -> Option<NoName> {
        let most = self.settings.flow_bytes;
        self.forget(flow).map(|reading| match reading {
            PendingFlow::Tcp(tcp) => tcp.why_not(most, &mut self.room),
            PendingFlow::Quic(_) => NoName::Incomplete,
        })
    }

    /// The number of incomplete flows.
    #[must_use]
    pub fn half_there(&self) -> usize {
        self.table.len()
    }

    /// The counters of flows that were discarded while incomplete.
    #[must_use]
    pub const fn forgotten(&self) -> DiscardCounts {
        self.forgotten
    }

    /// The total of allocated memory, in bytes.
    #[must_use]
    pub fn memory(&self) -> usize {
        self.table.memory() + self.kept_bytes + self.room.capacity() + self.last.capacity()
    }

    fn feed_tcp(
        &mut self,
        now_ns: u64,
        flow: Flow,
        (sequence, first): (u32, Option<u32>),
        payload: &[u8],
    ) -> Result<FoundName, Stop> {
        let most = self.settings.flow_bytes;
        if self.table.get_mut(&flow).is_none() {
            // Most hellos come whole, and need no entry.
            if first.is_none_or(|first| first == sequence) {
                let bytes = &payload[..payload.len().min(most.into())];
                let is_all = bytes.len() == usize::from(most);
                match tcp::read(bytes, first.is_some(), is_all, most) {
                    Err(Stop::More) => {}
                    read => {
                        self.last.clear();
                        self.last.extend_from_slice(bytes);
                        return read;
                    }
                }
            }
            self.begin(now_ns, flow, PendingFlow::Tcp(Tcp::new(sequence, first)));
        }
        let Some(PendingFlow::Tcp(tcp)) = self.table.get_mut(&flow) else {
            return Err(Stop::More);
        };
        let before = tcp.memory();
        let agrees = tcp.add(sequence, first, payload, most);
        self.kept_bytes = self.kept_bytes + tcp.memory() - before;
        let read = if agrees {
            tcp.read(most, &mut self.room)
        } else {
            Err(Stop::No(NoName::Contradictory))
        };
        if read != Err(Stop::More) {
            self.last.clear();
            self.last.extend_from_slice(tcp.beginning(&mut self.room));
        }
        read
    }

    fn feed_udp(&mut self, now_ns: u64, flow: Flow, payload: &[u8]) -> Result<FoundName, Stop> {
        let most = self.settings.flow_bytes;
        if let Some(PendingFlow::Quic(quic)) = self.table.get_mut(&flow) {
            let before = quic.memory();
            let added = quic.add(payload, most);
            self.kept_bytes = self.kept_bytes + quic.memory() - before;
            return added.and_then(|()| quic.read(most, &mut self.room));
        }
        let mut quic = Quic::default();
        quic.add(payload, most)?;
        let read = quic.read(most, &mut self.room);
        if read == Err(Stop::More) && quic.is_begun() {
            self.begin(now_ns, flow, PendingFlow::Quic(quic));
        }
        read
    }

    /// Keeps the received bytes of a new flow.
    fn begin(&mut self, now_ns: u64, flow: Flow, reading: PendingFlow) {
        let most = self.settings.flows.max(1) as usize;
        while self.table.len() >= most && self.oldest_gives_way() {}
        self.kept_bytes += reading.memory();
        self.table.insert(flow, now_ns, reading);
    }

    /// Evicts the flow that began first; `false`: no flow is left. Under a flood of incomplete hellos, it is the flow
    /// least likely to be completed.
    fn oldest_gives_way(&mut self) -> bool {
        let oldest = self.table.oldest();
        let is_one = oldest.is_some_and(|(flow, _)| self.forget(&flow).is_some());
        self.forgotten.gave_way += u64::from(is_one);
        is_one
    }

    /// Removes expired flows. Time counts from a flow's first piece, so that a client cannot keep an entry
    /// by sending one byte at a time.
    fn expire(&mut self, now_ns: u64) {
        while let Some((flow, begun_ns)) = self.table.oldest() {
            if now_ns.saturating_sub(begun_ns) < self.settings.timeout_ns {
                break;
            }
            self.forget(&flow);
            self.forgotten.timed_out += 1;
        }
    }

    fn forget(&mut self, flow: &Flow) -> Option<PendingFlow> {
        let reading = self.table.remove(flow)?;
        self.kept_bytes -= reading.memory();
        Some(reading)
    }
}
