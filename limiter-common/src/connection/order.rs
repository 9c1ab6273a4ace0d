//! The two ends of a connection, and userspace's commands about it to the kernel.

use crate::{
    address::{Address, Family},
    packet::{Datagram, FLAG_SYN, Facts, PROTOCOL_TCP, PacketKind, Transport},
    table::HashKey,
};

/// The two ends of a TCP connection. It consists of plain numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Ends {
    /// 0: IPv4, 1: IPv6.
    family: u32,
    peer_port: u16,
    own_port: u16,
    peer: [u64; 2],
    own: [u64; 2],
}

/// A command of userspace about one connection or queue, which the kernel carries out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct ConnectionOrder {
    /// The cookie of its socket, or the queue's count id.
    pub of: u64,
    /// [`Self::OPEN`], [`Self::CLOSED`], [`Self::SWEEP`] or [`Self::COMPLETED`].
    pub order: u64,
    /// The time at which its handshake was completed, in nanoseconds.
    pub now_ns: u64,
    /// Its ends, if it is open or its handshake completed.
    pub ends: Ends,
}

impl Ends {
    /// The ends of no connection.
    pub const NONE: Self = Self {
        family: 0,
        peer_port: 0,
        own_port: 0,
        peer: [0; 2],
        own: [0; 2],
    };

    /// Makes the ends of their addresses, which are of one family, and ports.
    #[must_use]
    #[inline(always)]
    pub const fn new(peer: &Address, peer_port: u16, own: &Address, own_port: u16) -> Self {
        Self {
            family: peer.family.number(),
            peer_port,
            own_port,
            peer: [peer.high, peer.low],
            own: [own.high, own.low],
        }
    }

    /// Returns the facts of the packet that opened the connection, as if the peer had opened it.
    #[must_use]
    #[inline(always)]
    pub const fn facts(&self) -> Facts {
        Facts {
            source: self.peer(),
            destination_high: self.own[0],
            destination_low: self.own[1],
            length: 0,
            packets: 1,
            datagram: Datagram::NONE,
            source_port: self.peer_port,
            destination_port: self.own_port,
            kind: PacketKind::segment(FLAG_SYN),
            transport: Transport::Tcp,
            protocol: PROTOCOL_TCP,
        }
    }

    /// The peer's address.
    #[must_use]
    #[inline(always)]
    pub const fn peer(&self) -> Address {
        Address {
            family: Family::of_index(self.family as usize),
            high: self.peer[0],
            low: self.peer[1],
        }
    }

    /// The host's own address.
    #[must_use]
    pub const fn own(&self) -> Address {
        Address {
            family: Family::of_index(self.family as usize),
            high: self.own[0],
            low: self.own[1],
        }
    }

    /// Returns the ends of the connection of a packet with these facts.
    #[must_use]
    #[inline(always)]
    pub const fn of_facts(facts: &Facts) -> Self {
        let own = Address {
            family: facts.source.family,
            high: facts.destination_high,
            low: facts.destination_low,
        };
        Self::new(
            &facts.source,
            facts.source_port,
            &own,
            facts.destination_port,
        )
    }

    /// The keyed hash of the connection.
    #[must_use]
    #[inline(always)]
    pub const fn hash(&self, hash_key: &HashKey) -> u64 {
        let ports = (self.peer_port as u64) << 16 | self.own_port as u64;
        let shape = (self.family as u64) << 32 | ports;
        let [peer, own] = [self.peer, self.own];
        hash_key.words_hash(&[shape, peer[0], peer[1], own[0], own[1]])
    }

    /// Whether the peer is this host itself, which has all of 127.0.0.0/8.
    #[must_use]
    #[inline(always)]
    pub const fn are_both_own(&self) -> bool {
        let is_same = self.peer[0] == self.own[0] && self.peer[1] == self.own[1];
        is_same || self.peer().is_v4_loopback()
    }
}

impl ConnectionOrder {
    /// The connection is open: count it as the policy says.
    pub const OPEN: u64 = 0;
    /// The connection is closed.
    pub const CLOSED: u64 = 1;
    /// Remove expired tickets from the queue, and the queue if it is unused.
    pub const SWEEP: u64 = 2;
    /// The connection's handshake was completed; userspace is the only source of this.
    pub const COMPLETED: u64 = 3;

    /// Makes the command to count an open connection, as the policy says.
    #[must_use]
    pub const fn open(cookie: u64, ends: Ends) -> Self {
        Self {
            of: cookie,
            order: Self::OPEN,
            now_ns: 0,
            ends,
        }
    }

    /// Makes the command to subtract a closed connection.
    #[must_use]
    pub const fn closed(cookie: u64) -> Self {
        Self {
            of: cookie,
            order: Self::CLOSED,
            now_ns: 0,
            ends: Ends::NONE,
        }
    }

    /// Makes the command to sweep the queue under a count id.
    #[must_use]
    pub const fn sweep(count_id: u64) -> Self {
        Self {
            of: count_id,
            order: Self::SWEEP,
            now_ns: 0,
            ends: Ends::NONE,
        }
    }

    /// Makes the command to charge limits on handshakes for a handshake completed at the time `now_ns`.
    #[must_use]
    pub const fn completed(ends: Ends, now_ns: u64) -> Self {
        Self {
            of: 0,
            order: Self::COMPLETED,
            now_ns,
            ends,
        }
    }
}
