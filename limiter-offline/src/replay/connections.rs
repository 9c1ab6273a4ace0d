//! Follows which connections are open, by the frames of a capture.
//!
//! The kernel knows the state of its own connections. A capture shows only handshakes, FIN and RST, so the
//! result is an approximation, and connections from before the capture are missing.

use std::collections::HashMap;

use limiter_common::{
    connection::Ends,
    packet::{FLAG_RST, Facts, PROTOCOL_TCP},
};

use super::connection::Connection;

/// The most open connections, as in the kernel; further ones are not counted.
const MOST: usize = 1 << 18;

/// The FIN flag: the segment's sender sends no more.
const FLAG_FIN: u8 = 0x01;

#[derive(Debug, Default)]
pub(super) struct Connections {
    open: HashMap<Connection, OpenConnection>,
    counts: ConnectionCounts,
}

/// The number of connections.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ConnectionCounts {
    /// Connections that clients opened.
    pub opened: u64,
    /// The most connections open at once.
    pub most_open: u64,
    /// Connections open now.
    pub open: u64,
}

#[derive(Debug)]
struct OpenConnection {
    ends: Ends,
    /// Whether the client has sent FIN.
    client_is_done: bool,
    /// Whether the server has sent FIN.
    server_is_done: bool,
}

/// A change of a connection's state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Change {
    /// The connection is established.
    Opened(Ends),
    /// The connection is closed.
    Closed(Ends),
}

/// Facts about a segment beyond its headers.
#[derive(Clone, Copy, Debug)]
pub(super) struct SegmentFacts {
    /// Whether it reached its destination.
    pub(super) passed: bool,
    /// Whether it completes its sender's handshake.
    pub(super) completes: bool,
    /// Whether the capture has segments from servers.
    pub(super) has_replies: bool,
}

impl Connections {
    /// Follows a packet; returns the change of its connection.
    pub(super) fn follow(&mut self, facts: &Facts, seen: SegmentFacts) -> Option<Change> {
        if facts.protocol != PROTOCOL_TCP {
            return None;
        }
        let of_client = Connection::of_client(facts);
        if seen.completes {
            return self.open(of_client, Ends::of_facts(facts));
        }
        let ends = facts.kind.tcp_flags() & (FLAG_FIN | FLAG_RST);
        if ends == 0 {
            return None;
        }
        let (connection, by_client) = if self.open.contains_key(&of_client) {
            (of_client, true)
        } else {
            (Connection::of_server(facts), false)
        };
        if by_client && !seen.passed {
            return None;
        }
        let open = self.open.get_mut(&connection)?;
        if by_client {
            open.client_is_done = true;
        } else {
            open.server_is_done = true;
        }
        let is_closed = ends & FLAG_RST != 0
            || open.client_is_done && (open.server_is_done || !seen.has_replies);
        if !is_closed {
            return None;
        }
        let closed = self.open.remove(&connection)?;
        self.counts.open = self.open.len() as u64;
        Some(Change::Closed(closed.ends))
    }

    pub(super) fn are_open(&self, connection: &Connection) -> bool {
        self.open.contains_key(connection)
    }

    pub(super) const fn counts(&self) -> ConnectionCounts {
        self.counts
    }

    fn open(&mut self, connection: Connection, ends: Ends) -> Option<Change> {
        if self.open.len() >= MOST {
            return None;
        }
        let open = OpenConnection {
            ends,
            client_is_done: false,
            server_is_done: false,
        };
        let before = self.open.insert(connection, open);
        self.counts.opened += 1;
        self.counts.open = self.open.len() as u64;
        self.counts.most_open = self.counts.most_open.max(self.counts.open);
        // If there is an earlier one, the client reconnected from the same port, and the capture lacks the old
        // end.
        before.is_none().then_some(Change::Opened(ends))
    }
}

#[cfg(test)]
mod tests {
    use limiter_common::{
        address::Address,
        packet::{FLAG_ACK, PacketKind, Transport},
    };

    use super::*;

    const CLIENT: (u8, u16) = (1, 4321);
    const SERVER: (u8, u16) = (2, 443);

    fn segment(from: (u8, u16), to: (u8, u16), flags: u8) -> Facts {
        let address = |last| Address::v4([192, 0, 2, last]);
        Facts {
            source: address(from.0),
            destination_high: address(to.0).high,
            destination_low: address(to.0).low,
            length: 60,
            source_port: from.1,
            destination_port: to.1,
            transport: Transport::Tcp,
            protocol: PROTOCOL_TCP,
            kind: PacketKind::segment(flags),
            ..Facts::NONE
        }
    }

    const PASSED: SegmentFacts = SegmentFacts {
        passed: true,
        completes: false,
        has_replies: true,
    };

    /// Opens a connection and feeds segments; returns the index of the one that closes it.
    fn closed_by(seen: SegmentFacts, segments: &[Facts]) -> Option<usize> {
        let mut connections = Connections::default();
        let ack = segment(CLIENT, SERVER, FLAG_ACK);
        let ends = Ends::of_facts(&ack);
        let completes = SegmentFacts {
            completes: true,
            ..PASSED
        };
        let opened = connections.follow(&ack, completes);
        assert_eq!(opened, Some(Change::Opened(ends)));
        let mut changes = segments.iter().map(|facts| connections.follow(facts, seen));
        let closed = changes.position(|change| change == Some(Change::Closed(ends)));
        assert_eq!(changes.flatten().count(), 0);
        let counts = connections.counts();
        assert_eq!((counts.opened, counts.most_open), (1, 1));
        assert_eq!(counts.open, u64::from(closed.is_none()));
        closed
    }

    #[test]
    fn connections_end_as_tcp_has_it() {
        let of_client = |flags| segment(CLIENT, SERVER, flags | FLAG_ACK);
        let of_server = |flags| segment(SERVER, CLIENT, flags | FLAG_ACK);
        let fins = [of_client(FLAG_FIN), of_server(0), of_server(FLAG_FIN)];
        assert_eq!(closed_by(PASSED, &fins), Some(2));
        let fins = [of_server(FLAG_FIN), of_client(0), of_client(FLAG_FIN)];
        assert_eq!(closed_by(PASSED, &fins), Some(2));
        let half_closed = [of_client(FLAG_FIN), of_client(FLAG_FIN), of_server(0)];
        assert_eq!(closed_by(PASSED, &half_closed), None);
        for reset in [of_client(FLAG_RST), of_server(FLAG_RST)] {
            assert_eq!(closed_by(PASSED, &[of_client(0), reset]), Some(1));
        }
        let other = segment((1, 4322), SERVER, FLAG_RST);
        assert_eq!(closed_by(PASSED, &[other]), None);
        // A dropped segment does not reach the server.
        let dropped = SegmentFacts {
            passed: false,
            ..PASSED
        };
        assert_eq!(closed_by(dropped, &[of_client(FLAG_RST)]), None);
        let one_way = SegmentFacts {
            has_replies: false,
            ..PASSED
        };
        assert_eq!(closed_by(one_way, &[of_client(FLAG_FIN)]), Some(0));
    }

    #[test]
    fn a_client_that_begins_anew_has_one_connection() {
        let mut connections = Connections::default();
        let ack = segment(CLIENT, SERVER, FLAG_ACK);
        let completes = SegmentFacts {
            completes: true,
            ..PASSED
        };
        assert!(connections.follow(&ack, completes).is_some());
        assert_eq!(connections.follow(&ack, completes), None);
        assert_eq!(connections.counts().most_open, 1);
    }
}
