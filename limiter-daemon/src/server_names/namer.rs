//! Names the connections and QUIC flows of one policy after another.

use std::{collections::VecDeque, net::IpAddr, os::fd::BorrowedFd, sync::Arc};

use limiter_common::{
    connection::Ends,
    packet::PROTOCOL_UDP,
    server_name::{FlowRecord, MOST_FIRST_BYTES, Meaning, Records},
};
use limiter_datapath::kernel::{DatapathError, FirstBytes, Namer, ServerNameMaps, monotonic_now};
use limiter_names::{
    Change, Flow, Follower, FollowerSettings, Name, NoName, PieceCounts, Protocol, Segment,
};
use limiter_policy::policy::{DnsName, ServerNames};

use super::{quic, segment::TcpSegment};

/// How long first bytes wait for the end of their connection's handshake, which is received with them.
const PATIENCE_NS: u64 = 100_000_000;

/// The most pieces that wait. More come only from forged handshakes, which never end.
const MOST_WAITING: usize = 1024;

/// The most pieces to read before the thread checks for other work.
const AT_ONCE: usize = 4096;

/// The outcomes of connections and of QUIC flows.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Outcomes {
    pub(super) tcp: PieceCounts,
    pub(super) quic: PieceCounts,
}

/// Names connections and QUIC flows.
#[derive(Default)]
pub(super) struct ConnectionNamer {
    /// `None`: the policy uses no names.
    current: Option<CurrentPolicy>,
    follower: Option<Box<Follower>>,
    waiting: VecDeque<WaitingSegment>,
}

/// The policy's meaning of names, and the maps of its connections and QUIC flows.
pub(super) struct CurrentPolicy {
    pub(super) names: Arc<ServerNames>,
    pub(super) number: u64,
    pub(super) namer: Namer,
}

impl CurrentPolicy {
    /// Returns whether a connection waits for admission under a limit on the connections of its name.
    fn is_waiting(&self, recorded: &FlowRecord) -> bool {
        let asked = recorded.meaning.limits_of(self.number);
        !recorded.is_in_service() && asked & self.names.connections() != 0
    }

    /// Blames the client of a connection if its name never becomes known, for limits to which that matters.
    fn blame(&mut self, ends: &Ends, recorded: &FlowRecord) -> Result<(), DatapathError> {
        let unfinished = recorded.unfinished();
        unfinished.map_or(Ok(()), |recorded| self.namer.set(ends, recorded))
    }

    /// Returns the policy's meaning of a connection's name; `None`: it has no name.
    fn meaning(&self, name: Option<&Name>) -> Meaning {
        let name = name.and_then(dns_name);
        Meaning::new(self.number, &self.names.match_tcp_name(name.as_ref()))
    }
}

/// A segment of a connection that the kernel has not recorded yet.
struct WaitingSegment {
    until_ns: u64,
    ends: Ends,
    length: u32,
    segment: Box<[u8]>,
}

impl ConnectionNamer {
    pub(super) const fn is_idle(&self) -> bool {
        self.current.is_none()
    }

    /// Returns the outcomes of connections and of QUIC flows.
    pub(super) fn outcomes(&self) -> Outcomes {
        let follower = self.follower.as_ref();
        follower.map_or_else(Outcomes::default, |follower| Outcomes {
            tcp: follower.followed(Protocol::Tcp),
            quic: follower.followed(Protocol::Udp),
        })
    }

    pub(super) fn is_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Returns the descriptor that becomes readable when there are first bytes.
    pub(super) fn readable(&self) -> Option<BorrowedFd<'_>> {
        let current = self.current.as_ref();
        current.map(|current| current.namer.readable())
    }

    /// Names connections and QUIC flows by a policy from now on, including already named ones.
    pub(super) fn follow(
        &mut self,
        next: Option<(Arc<ServerNames>, Arc<ServerNameMaps>)>,
    ) -> Result<(), DatapathError> {
        // Drop the old namer first: two must not read first bytes at a time.
        let before = self.current.take();
        let Some((names, maps)) = next else {
            *self = Self::default();
            return Ok(());
        };
        let current = self.current.insert(CurrentPolicy {
            number: names.number(),
            names,
            namer: maps.namer()?,
        });
        let Some(follower) = &mut self.follower else {
            let settings = FollowerSettings::default();
            self.follower = Some(Box::new(Follower::new(settings)));
            return Ok(());
        };
        let mut over = Vec::new();
        let now_ns = monotonic_now();
        for (flow, name) in follower.flows() {
            let ends = ends(flow);
            if flow.protocol == Protocol::Udp {
                if !quic::rename(current, now_ns, &ends, name)? {
                    over.push(*flow);
                }
                continue;
            }
            match current.namer.flow(&ends)? {
                Some(recorded) if recorded.is_read() => {
                    let mut flow = recorded.read(current.meaning(name));
                    if !(before.as_ref()).is_some_and(|before| before.is_waiting(&recorded)) {
                        // The connection did not wait for admission, so it continues.
                        flow.serve();
                    }
                    current.namer.set(&ends, flow)?;
                }
                _ => over.push(*flow),
            }
        }
        for flow in over {
            follower.end(&flow);
        }
        Ok(())
    }

    /// Reads the first bytes that have arrived.
    pub(super) fn work(&mut self) -> Result<(), DatapathError> {
        let now_ns = monotonic_now();
        let mut pieces: Vec<_> = self.waiting.drain(..).collect();
        let mut datagrams: Vec<(Ends, Box<[u8]>)> = Vec::new();
        if let Some(current) = &mut self.current {
            let mut take = |piece: FirstBytes<'_>| {
                if piece.protocol == PROTOCOL_UDP {
                    datagrams.push((piece.ends, piece.bytes.into()));
                    return;
                }
                pieces.push(WaitingSegment {
                    until_ns: now_ns.saturating_add(PATIENCE_NS),
                    ends: piece.ends,
                    length: piece.length,
                    segment: piece.bytes.into(),
                });
            };
            for _ in 0..AT_ONCE {
                if !current.namer.take(&mut take) {
                    break;
                }
            }
        }
        for piece in pieces {
            if !self.read(now_ns, &piece)?
                && now_ns < piece.until_ns
                && self.waiting.len() < MOST_WAITING
            {
                self.waiting.push_back(piece);
            }
        }
        if let (Some(current), Some(follower)) = (&mut self.current, &mut self.follower) {
            for (ends, datagram) in &datagrams {
                quic::read(current, follower, now_ns, (ends, datagram))?;
            }
        }
        Ok(())
    }

    /// Reads a piece; returns whether the kernel has recorded its connection.
    fn read(&mut self, now_ns: u64, piece: &WaitingSegment) -> Result<bool, DatapathError> {
        let (Some(current), Some(follower)) = (&mut self.current, &mut self.follower) else {
            return Ok(true);
        };
        let Some(recorded) = current.namer.flow(&piece.ends)? else {
            return Ok(false);
        };
        if recorded.is_contradictory() {
            return Ok(true);
        }
        let Some(segment) = TcpSegment::new(&piece.ends, piece.length, &piece.segment) else {
            // Unreadable segments would otherwise use up, at no cost, the segments that the kernel reports of a
            // connection.
            current.blame(&piece.ends, &recorded)?;
            return Ok(true);
        };
        let flow = flow(&piece.ends, Protocol::Tcp);
        if recorded.is_read() != follower.is_known(&flow) {
            if recorded.is_read() {
                // An earlier daemon has read it, or this one had to forget it for others.
                return Ok(true);
            }
            // The known name belongs to an earlier connection of these ports.
            follower.end(&flow);
        }
        if let Some(first) = recorded.second_hello() {
            let piece = (&piece.ends, &recorded, first, segment);
            read_second_hello(current, follower, now_ns, piece)?;
            return Ok(true);
        }
        let payload = Segment::Tcp {
            sequence: segment.sequence,
            first: Some(recorded.first),
            payload: segment.payload,
        };
        let mut read = None;
        let is_to_blame = follower.feed(now_ns, flow, payload, |change| match change {
            Change::Named(_, found) => read = Some(Ok(found)),
            Change::Nameless(_, reason) => read = Some(Err(reason)),
            // The forgotten flow keeps its meaning under the policy in force.
            Change::GaveWay(_) => {}
        });
        if read == Some(Err(NoName::Contradictory)) {
            current.namer.set(&piece.ends, recorded.contradictory())?;
            return Ok(true);
        }
        let bytes = follower.first_bytes(&flow);
        let bytes_read = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
        if recorded.is_read() {
            // The bytes were evicted, or the segment was under way while they were read.
            if !current.namer.has_first_bytes(&piece.ends)? {
                current.namer.set_first_bytes(&piece.ends, bytes)?;
                let known = recorded.with_first_bytes(bytes_read, recorded.records());
                current.namer.set(&piece.ends, known)?;
            }
        } else if let Some(read) = read {
            // Store the bytes before the programs learn that there are some to compare with.
            current.namer.set_first_bytes(&piece.ends, bytes)?;
            let found = read.as_ref().ok();
            let records = if found.is_some_and(|found| found.may_come_again)
                && current.names.holds()
                && !recorded.has_passed()
            {
                Records::Awaited
            } else {
                Records::Read
            };
            let meaning = current.meaning(found.map(|found| &found.name));
            let mut named = recorded.read(meaning).with_first_bytes(bytes_read, records);
            if read.map_or_else(NoName::may_hide_one, |found| !found.is_binding) {
                named = named.hidden();
            }
            current.namer.set(&piece.ends, named)?;
        } else if is_to_blame {
            current.blame(&piece.ends, &recorded)?;
        }
        Ok(true)
    }
}

/// Reads a segment of a connection's second hello, which begins at sequence number `first`.
fn read_second_hello(
    current: &mut CurrentPolicy,
    follower: &mut Follower,
    now_ns: u64,
    (ends, recorded, first, segment): (&Ends, &FlowRecord, u32, TcpSegment<'_>),
) -> Result<(), DatapathError> {
    let payload = (segment.sequence, segment.payload);
    let flow = flow(ends, Protocol::Tcp);
    let Some(read) = follower.feed_second_hello(now_ns, flow, first, payload) else {
        return Ok(());
    };
    let position = recorded.bytes_read();
    let end = read.ok().and_then(|bytes| {
        let end = position.checked_add(u32::try_from(bytes.len()).ok()?)?;
        (end <= MOST_FIRST_BYTES).then_some((bytes, end))
    });
    let Some((bytes, end)) = end else {
        return current.namer.set(ends, recorded.contradictory());
    };
    // Store the bytes before the programs learn that there are more to compare with.
    if current.namer.add_first_bytes(ends, position, bytes)? {
        current
            .namer
            .set(ends, recorded.with_first_bytes(end, Records::Read))?;
    }
    Ok(())
}

/// Returns a name as policies have them; `None`: no policy can have it.
pub(super) fn dns_name(name: &Name) -> Option<DnsName> {
    name.as_str().parse().ok()
}

pub(super) fn flow(ends: &Ends, protocol: Protocol) -> Flow {
    let facts = ends.facts();
    Flow {
        client: ends.peer().into(),
        server: ends.own().into(),
        client_port: facts.source_port,
        server_port: facts.destination_port,
        protocol,
    }
}

fn ends(flow: &Flow) -> Ends {
    let [client, server] = [flow.client, flow.server].map(|address: IpAddr| address.into());
    Ends::new(&client, flow.client_port, &server, flow.server_port)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flows_have_the_ends_of_their_connections() {
        for [client, server] in [
            ["192.0.2.1", "198.51.100.2"],
            ["2001:db8::1", "2001:db8::2"],
        ] {
            let of = Flow {
                client: client.parse().unwrap(),
                server: server.parse().unwrap(),
                client_port: 40_000,
                server_port: 443,
                protocol: Protocol::Tcp,
            };
            assert_eq!(flow(&ends(&of), Protocol::Tcp), of);
        }
    }
}
