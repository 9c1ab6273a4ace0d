//! Names the connections of one policy after another.

use std::{collections::VecDeque, net::IpAddr, os::fd::BorrowedFd, sync::Arc};

use limiter_common::{connection::Ends, packet::Asked, server_name::Flow as Noted};
use limiter_datapath::kernel::{DatapathError, Namer, ServerNameMaps, monotonic_now};
use limiter_names::{Change, Flow, Followed, Follower, FollowerSettings, Name, Protocol, Segment};
use limiter_policy::policy::{DnsName, ServerNames};

use super::segment::TcpSegment;

/// How long first bytes wait for the end of their connection's handshake, which is received with them.
const PATIENCE_NS: u64 = 100_000_000;

/// The most pieces that wait. A handshake that never ends is forged.
const MOST_WAITING: usize = 1024;

/// The most pieces that are read before others have their turn.
const AT_ONCE: usize = 4096;

/// Names connections.
#[derive(Default)]
pub(super) struct ConnectionNamer {
    /// `None`: the policy asks for no names.
    current: Option<Current>,
    follower: Option<Box<Follower>>,
    waiting: VecDeque<Waiting>,
}

/// What a policy says of names, and where connections have theirs.
struct Current {
    names: Arc<ServerNames>,
    number: u64,
    namer: Namer,
}

impl Current {
    /// Returns whether a connection waits for its place among those of its name.
    fn waits(&self, noted: &Noted) -> bool {
        let asked = noted.limits_of(self.number);
        !noted.is_in_service() && asked & self.names.connections() != 0
    }
}

/// A segment of a connection that is not noted yet.
struct Waiting {
    until_ns: u64,
    ends: Ends,
    length: u32,
    segment: Box<[u8]>,
}

impl ConnectionNamer {
    /// Returns whether the policy asks for no names.
    pub(super) const fn is_idle(&self) -> bool {
        self.current.is_none()
    }

    /// Returns what came of connections.
    pub(super) fn outcomes(&self) -> Followed {
        let follower = self.follower.as_ref();
        follower.map_or_else(Followed::default, |follower| {
            follower.followed(Protocol::Tcp)
        })
    }

    /// Returns whether first bytes wait for the end of a handshake.
    pub(super) fn waits(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Returns what becomes readable when there are first bytes.
    pub(super) fn readable(&self) -> Option<BorrowedFd<'_>> {
        let current = self.current.as_ref();
        current.map(|current| current.namer.readable())
    }

    /// Names connections by a policy from now on, also those whose names are known.
    pub(super) fn follow(
        &mut self,
        next: Option<(Arc<ServerNames>, Arc<ServerNameMaps>)>,
    ) -> Result<(), DatapathError> {
        // Before another reads first bytes.
        let before = self.current.take();
        let Some((names, maps)) = next else {
            *self = Self::default();
            return Ok(());
        };
        let current = self.current.insert(Current {
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
        for (flow, name) in follower.flows() {
            let ends = ends(flow);
            match current.namer.flow(&ends)? {
                Some(noted) if noted.is_read() => {
                    let asked = asked(&current.names, name);
                    let mut flow = noted.read(current.number, &asked);
                    if !(before.as_ref()).is_some_and(|before| before.waits(&noted)) {
                        // It was not turned away, and goes on.
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

    /// Reads what there is of first bytes.
    pub(super) fn work(&mut self) -> Result<(), DatapathError> {
        let now_ns = monotonic_now();
        let mut pieces: Vec<_> = self.waiting.drain(..).collect();
        if let Some(current) = &mut self.current {
            let mut take = |ends, length, segment: &[u8]| {
                pieces.push(Waiting {
                    until_ns: now_ns.saturating_add(PATIENCE_NS),
                    ends,
                    length,
                    segment: segment.into(),
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
        Ok(())
    }

    /// Reads a piece; returns whether its connection is noted.
    fn read(&mut self, now_ns: u64, piece: &Waiting) -> Result<bool, DatapathError> {
        let (Some(current), Some(follower)) = (&mut self.current, &mut self.follower) else {
            return Ok(true);
        };
        let Some(noted) = current.namer.flow(&piece.ends)? else {
            return Ok(false);
        };
        let segment = TcpSegment::new(&piece.ends, piece.length, &piece.segment);
        let (false, Some(segment)) = (noted.is_read(), segment) else {
            return Ok(true);
        };
        let flow = flow(&piece.ends);
        if follower.is_known(&flow) {
            // An earlier connection of these ports had that name.
            follower.end(&flow);
        }
        let payload = Segment::Tcp {
            sequence: segment.sequence,
            first: Some(noted.first),
            payload: segment.payload,
        };
        let mut read = None;
        follower.feed(now_ns, flow, payload, |change| match change {
            Change::Named(_, found) => read = Some(Some(found.name)),
            Change::Nameless(..) => read = Some(None),
            // It keeps what the policy in force says of it.
            Change::GaveWay(_) => {}
        });
        if let Some(name) = read {
            let asked = asked(&current.names, name.as_ref());
            let named = noted.read(current.number, &asked);
            current.namer.set(&piece.ends, named)?;
        }
        Ok(true)
    }
}

/// Returns what a policy says of a name; `None`: there is none.
fn asked(names: &ServerNames, name: Option<&Name>) -> Asked {
    let name = name.and_then(|name| name.as_str().parse::<DnsName>().ok());
    names.asked(name.as_ref())
}

fn flow(ends: &Ends) -> Flow {
    let facts = ends.facts();
    Flow {
        client: ends.peer().into(),
        server: ends.own().into(),
        client_port: facts.source_port,
        server_port: facts.destination_port,
        protocol: Protocol::Tcp,
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
            assert_eq!(flow(&ends(&of)), of);
        }
    }
}
