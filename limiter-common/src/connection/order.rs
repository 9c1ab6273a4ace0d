//! The two ends of a connection, and what userspace orders about it.

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

/// An order of userspace about one connection, or one queue, which the kernel carries out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct ConnectionOrder {
    /// The cookie of its socket, or the queue's place.
    pub of: u64,
    /// [`Self::OPEN`], [`Self::CLOSED`], [`Self::SWEEP`] or [`Self::COMPLETED`].
    pub order: u64,
    /// When its handshake was completed, in nanoseconds.
    pub now_ns: u64,
    /// Its ends, if it is open or its handshake completed.
    pub ends: Ends,
}

impl Ends {
    /// Those of no connection.
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

    /// Returns the facts of the packet that opened the connection, or would have, had the peer
    /// opened it.
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

    /// Returns the peer's address.
    #[must_use]
    #[inline(always)]
    pub const fn peer(&self) -> Address {
        Address {
            family: Family::of_index(self.family as usize),
            high: self.peer[0],
            low: self.peer[1],
        }
    }

    /// Returns the host's own address.
    #[must_use]
    pub const fn own(&self) -> Address {
        Address {
            family: Family::of_index(self.family as usize),
            high: self.own[0],
            low: self.own[1],
        }
    }

    /// Returns the ends of the connection that a packet with these facts belongs to.
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

    /// Returns the hash of the connection.
    #[must_use]
    #[inline(always)]
    pub const fn hash(&self, hash_key: &HashKey) -> u64 {
        let ports = (self.peer_port as u64) << 16 | self.own_port as u64;
        let shape = (self.family as u64) << 32 | ports;
        let [peer, own] = [self.peer, self.own];
        hash_key.words_hash(&[shape, peer[0], peer[1], own[0], own[1]])
    }

    /// Returns whether the peer is this host itself, which has all of 127.0.0.0/8.
    #[must_use]
    #[inline(always)]
    pub const fn are_both_own(&self) -> bool {
        let is_same = self.peer[0] == self.own[0] && self.peer[1] == self.own[1];
        is_same || self.peer().is_v4_loopback()
    }
}

impl ConnectionOrder {
    /// The connection is open, and counted where the policy says.
    pub const OPEN: u64 = 0;
    /// It is closed.
    pub const CLOSED: u64 = 1;
    /// Expired tickets are removed from the queue, and so is the queue if it is unused.
    pub const SWEEP: u64 = 2;
    /// Its handshake was completed, which nobody else tells.
    pub const COMPLETED: u64 = 3;

    /// Orders that an open connection is counted, where the policy says.
    #[must_use]
    pub const fn open(cookie: u64, ends: Ends) -> Self {
        Self {
            of: cookie,
            order: Self::OPEN,
            now_ns: 0,
            ends,
        }
    }

    /// Orders that a closed connection is taken off.
    #[must_use]
    pub const fn closed(cookie: u64) -> Self {
        Self {
            of: cookie,
            order: Self::CLOSED,
            now_ns: 0,
            ends: Ends::NONE,
        }
    }

    /// Orders that the queue at that place is swept.
    #[must_use]
    pub const fn sweep(place: u64) -> Self {
        Self {
            of: place,
            order: Self::SWEEP,
            now_ns: 0,
            ends: Ends::NONE,
        }
    }

    /// Orders that a handshake, completed at the time `now_ns`, is charged to limits on them.
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
