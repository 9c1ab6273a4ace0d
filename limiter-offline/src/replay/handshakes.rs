//! Follows which clients complete a TCP handshake, by the frames of a capture.
//!
//! The kernel knows this of its own connections; a capture shows only packets. A client completes a handshake
//! by acknowledging the server's initial sequence number, which a forger cannot know. If the capture lacks the
//! servers' segments, an ACK that continues the client's own SYN must do, although a forger could send it as
//! well.

use std::collections::{HashMap, VecDeque};

use limiter_capture::CapturedFrame;
use limiter_common::{
    address::Address,
    packet::{self, FLAG_ACK, FLAG_RST, FLAG_SYN, Facts, PROTOCOL_TCP, TcpNumbers},
};

use super::connection::Connection;

/// The most half-open connections; beyond it, the oldest are forgotten.
const HALF_OPEN: usize = 1 << 18;

#[derive(Debug, Default)]
pub(super) struct Handshakes {
    half_open: HashMap<Connection, HalfOpenHandshake>,
    /// The connections in order of their SYNs, including some that are no longer half open.
    opened: VecDeque<Connection>,
    counts: HandshakeCounts,
    /// Whether the capture has a server's SYN-ACK.
    has_replies: bool,
}

/// The number of handshakes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HandshakeCounts {
    /// Handshakes that clients began; a retransmitted SYN does not count.
    pub begun: u64,
    /// Begun handshakes that the client completed, which proves the client.
    pub completed: u64,
    /// Completed handshakes without the server's SYN-ACK in the capture.
    pub assumed: u64,
}

/// The sequence numbers of an incomplete handshake.
#[derive(Clone, Copy, Debug)]
struct HalfOpenHandshake {
    of_client: u32,
    /// `None`: no SYN-ACK was captured.
    of_server: Option<u32>,
}

impl Handshakes {
    /// Follows a packet; returns the client if it completes a handshake. `passed`: the packet reached its
    /// destination.
    pub(super) fn follow(
        &mut self,
        frame: &CapturedFrame<'_>,
        facts: &Facts,
        passed: bool,
    ) -> Option<Address> {
        if facts.protocol != PROTOCOL_TCP {
            return None;
        }
        let numbers = packet::tcp_numbers(frame)?;
        let flags = facts.kind.tcp_flags();
        let from_client = Connection::of_client(facts);
        if flags & FLAG_RST != 0 {
            self.half_open.remove(&from_client);
            return None;
        }
        match (flags & FLAG_SYN != 0, flags & FLAG_ACK != 0) {
            (true, false) if passed => self.open(from_client, numbers.sequence),
            (true, true) => self.note_reply(Connection::of_server(facts), numbers),
            (false, true) if passed && self.completes(from_client, numbers) => {
                return Some(facts.source);
            }
            _ => {}
        }
        None
    }

    /// Returns whether the connection's handshake has begun and is incomplete.
    pub(super) fn are_half_open(&self, connection: &Connection) -> bool {
        self.half_open.contains_key(connection)
    }

    /// Returns whether the capture has a server's SYN-ACK.
    pub(super) const fn has_replies(&self) -> bool {
        self.has_replies
    }

    pub(super) const fn counts(&self) -> HandshakeCounts {
        self.counts
    }

    fn open(&mut self, connection: Connection, of_client: u32) {
        let half_open = HalfOpenHandshake {
            of_client,
            of_server: None,
        };
        if self.half_open.insert(connection, half_open).is_some() {
            return;
        }
        self.counts.begun += 1;
        self.opened.push_back(connection);
        if self.opened.len() > HALF_OPEN
            && let Some(oldest) = self.opened.pop_front()
        {
            self.half_open.remove(&oldest);
        }
    }

    fn note_reply(&mut self, connection: Connection, numbers: TcpNumbers) {
        self.has_replies = true;
        if let Some(half_open) = self.half_open.get_mut(&connection)
            && numbers.acknowledged == half_open.of_client.wrapping_add(1)
        {
            half_open.of_server = Some(numbers.sequence);
        }
    }

    fn completes(&mut self, connection: Connection, numbers: TcpNumbers) -> bool {
        let Some(half_open) = self.half_open.get(&connection) else {
            return false;
        };
        let continues = numbers.sequence == half_open.of_client.wrapping_add(1);
        let acknowledges = match half_open.of_server {
            Some(of_server) => numbers.acknowledged == of_server.wrapping_add(1),
            None => !self.has_replies,
        };
        let completes = continues && acknowledges;
        if completes {
            self.counts.completed += 1;
            self.counts.assumed += u64::from(half_open.of_server.is_none());
            self.half_open.remove(&connection);
        }
        completes
    }
}

#[cfg(test)]
mod tests;
