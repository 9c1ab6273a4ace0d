//! Follows the flows of a capture and reads the name that each client asks for.

use std::collections::{HashMap, hash_map::Entry};

use limiter_capture::Packet;
use limiter_common::{
    counters::Traffic,
    packet::{self, FLAG_ACK, FLAG_SYN, Facts, PROTOCOL_TCP, TcpNumbers},
};
use limiter_names::{Flow, NoName, Outcome, Protocol, Reader, Segment, Settings};

use super::{
    direction::{self, FlowStart},
    summary::Summary,
};

/// The most flows to follow; packets of further flows are only counted.
const MOST_FLOWS: usize = 1 << 20;

/// Collects names from the packets of a capture, taken in order.
pub struct Collector {
    reader: Reader,
    followed: HashMap<Flow, FollowedFlow>,
    most_flows: usize,
    /// The time of the first packet, in nanoseconds since the capture's epoch.
    begun_ns: Option<i128>,
    summary: Summary,
}

struct FollowedFlow {
    /// The sequence number of the client's first byte, if known.
    first: Option<u32>,
    /// Whether the client has sent anything beyond headers.
    has_payload: bool,
    outcome: Option<Outcome>,
    /// The traffic from client to server.
    traffic: Traffic,
}

impl Default for Collector {
    fn default() -> Self {
        Self::with_room(MOST_FLOWS)
    }
}

impl Collector {
    fn with_room(most_flows: usize) -> Self {
        Self {
            reader: Reader::new(Settings::default()),
            followed: HashMap::new(),
            most_flows,
            begun_ns: None,
            summary: Summary::default(),
        }
    }

    /// Takes the capture's next packet.
    pub fn take(&mut self, packet: &Packet<'_>) {
        self.summary.packets += 1;
        self.summary.cut += u64::from(packet.frame.is_cut());
        let begun_ns = *self.begun_ns.get_or_insert(packet.time_ns);
        let now_ns = u64::try_from(packet.time_ns - begun_ns).unwrap_or(0);
        let mut facts = Facts::NONE;
        if packet::parse(&packet.frame, &mut facts).is_err() {
            return;
        }
        let Some(flow) = direction::from_source(&facts) else {
            return;
        };
        let numbers = packet::tcp_numbers(&packet.frame);
        if facts.protocol == PROTOCOL_TCP && numbers.is_none() {
            return;
        }
        let Some(flow) = self.follow(flow, &facts, numbers) else {
            return;
        };
        let range = packet::payload_range(&packet.frame).unwrap_or_default();
        let end = range.end.min(packet.frame.data.len());
        let payload = packet.frame.data.get(range.start..end);
        self.feed(now_ns, flow, &facts, numbers, payload.unwrap_or_default());
    }

    /// Returns the packet's flow if the client sent the packet and there is room to follow the flow.
    fn follow(
        &mut self,
        from_source: Flow,
        facts: &Facts,
        numbers: Option<TcpNumbers>,
    ) -> Option<Flow> {
        let beginning = direction::beginning(facts, numbers);
        let to_source = direction::reversed(from_source);
        let begins = facts.kind.tcp_flags() & FLAG_SYN != 0;
        let is_known = |flow: &Flow| {
            let followed = self.followed.get(flow)?;
            // A new connection may reuse the ports of an earlier one.
            Some(!begins || followed.first.is_none() || followed.first == beginning.first)
        };
        let (flow, is_from_client) = match (is_known(&from_source), is_known(&to_source)) {
            (Some(true), _) => (from_source, true),
            (None, Some(true)) => (to_source, false),
            _ if beginning.is_from_client => (from_source, true),
            _ => (to_source, false),
        };
        self.begin(flow, beginning, begins);
        if !self.followed.contains_key(&flow) {
            self.summary.not_followed += 1;
            return None;
        }
        is_from_client.then_some(flow)
    }

    /// Starts to follow a new flow, or a new connection with the same ends.
    fn begin(&mut self, flow: Flow, beginning: FlowStart, begins: bool) {
        let has_room = self.followed.len() < self.most_flows;
        let new = FollowedFlow {
            first: beginning.first,
            has_payload: false,
            outcome: None,
            traffic: Traffic::default(),
        };
        match self.followed.entry(flow) {
            Entry::Vacant(entry) => {
                if has_room {
                    entry.insert(new);
                }
            }
            Entry::Occupied(mut entry) if begins => {
                let followed = entry.get_mut();
                if followed.first.is_none() && followed.outcome.is_none() {
                    // The SYN arrives late, after data of its connection.
                    followed.first = beginning.first;
                } else if followed.first != beginning.first {
                    let over = entry.insert(new);
                    end(&mut self.summary, &mut self.reader, &flow, over);
                }
            }
            Entry::Occupied(_) => {}
        }
    }

    /// Counts a packet of the client, and feeds its payload to the reader.
    fn feed(
        &mut self,
        now_ns: u64,
        flow: Flow,
        facts: &Facts,
        numbers: Option<TcpNumbers>,
        payload: &[u8],
    ) {
        let Some(followed) = self.followed.get_mut(&flow) else {
            return;
        };
        followed.traffic += facts.traffic();
        if payload.is_empty() {
            return;
        }
        followed.has_payload = true;
        if followed.outcome.is_some() {
            return;
        }
        let segment = match (flow.protocol, numbers) {
            (Protocol::Udp, _) => Segment::Udp { payload },
            (Protocol::Tcp, Some(numbers)) => {
                // A SYN takes a sequence number, before the payload's first.
                let is_syn = facts.kind.tcp_flags() & (FLAG_SYN | FLAG_ACK) == FLAG_SYN;
                Segment::Tcp {
                    sequence: numbers.sequence.wrapping_add(is_syn.into()),
                    first: followed.first,
                    payload,
                }
            }
            (Protocol::Tcp, None) => return,
        };
        followed.outcome = self.reader.feed(now_ns, flow, segment);
    }

    /// Ends all flows and returns the summary.
    #[must_use]
    pub fn finish(mut self) -> Summary {
        for (flow, followed) in self.followed {
            end(&mut self.summary, &mut self.reader, &flow, followed);
        }
        self.summary
    }
}

/// Adds an ended flow to the summary.
fn end(summary: &mut Summary, reader: &mut Reader, flow: &Flow, followed: FollowedFlow) {
    let given_up = reader.give_up(flow);
    match followed.outcome {
        Some(Outcome::Name(found)) => summary.add(found, followed.traffic),
        Some(Outcome::NoName(reason)) => summary.add_unread(reason, followed.traffic),
        None if followed.has_payload => {
            // The reader dropped the flow: its bytes came too slowly, or too many at once.
            let reason = given_up.unwrap_or(NoName::Incomplete);
            summary.add_unread(reason, followed.traffic);
        }
        None => summary.silent += 1,
    }
}

#[cfg(test)]
mod tests;
