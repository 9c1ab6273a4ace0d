//! QUIC: the ClientHello in a client's Initial packets (RFC 9000, RFC 9001, RFC 9369).
//!
//! Their key follows from a number that the first of them carries in clear text, so anybody who sees
//! that can read them. A hello takes several packets and datagrams, in any order, and browsers shuffle
//! its parts within each.

mod frames;
mod header;
mod keys;
#[cfg(any(test, feature = "testing"))]
mod sealed;
mod version;

use self::{
    header::{Header, SHORTEST},
    keys::Keys,
    version::Kind,
};
#[cfg(any(test, feature = "testing"))]
pub use self::{
    sealed::{Initial, crypto},
    version::Version,
};
use crate::{
    hello,
    outcome::{Found, How, NoName, Stop},
    pieces::Pieces,
};

/// A connection whose hello is being collected, once a packet of it has been opened.
#[derive(Debug, Default)]
pub(crate) struct Quic(Option<Opened>);

#[derive(Debug)]
struct Opened {
    keys: Keys,
    pieces: Pieces,
}

impl Quic {
    /// Returns whether a packet has been opened.
    pub(crate) const fn is_begun(&self) -> bool {
        self.0.is_some()
    }

    /// Adds what the Initial packets in a client's datagram bring of the handshake's first `most`
    /// bytes. What cannot be opened changes nothing.
    pub(crate) fn add(&mut self, datagram: &[u8], most: u16) -> Result<(), Stop> {
        let mut rest = datagram;
        let mut connection = None;
        while !rest.is_empty() {
            let header = match Header::read(rest) {
                Ok(header) => header,
                // What is behind the first packet may be anything; and anybody can send what is no
                // QUIC, which ends nothing that has begun.
                Err(_) if connection.is_some() || self.is_begun() => break,
                Err(reason) => return Err(Stop::No(reason)),
            };
            // Packets of one datagram are of one connection.
            if *connection.get_or_insert(header.connection) != header.connection {
                break;
            }
            if header.kind == Kind::Initial {
                if datagram.len() < SHORTEST {
                    return self.unread(NoName::Malformed);
                }
                self.open(&rest[..header.end], &header, most)?;
            }
            rest = &rest[header.end..];
        }
        Ok(())
    }

    /// Opens a packet, with the connection's key or one that follows from the packet.
    fn open(&mut self, packet: &[u8], header: &Header, most: u16) -> Result<(), Stop> {
        // The server's choice of a number does not change the key, so the connection's own comes first.
        if let Some(opened) = &mut self.0
            && let Some(payload) = opened.keys.open(packet, header.number_at)
        {
            return frames::read(&payload, &mut opened.pieces, most);
        }
        let keys = Keys::of_client(header.version, header.connection.as_slice());
        let Some(payload) = keys.open(packet, header.number_at) else {
            return self.unread(NoName::Undecryptable);
        };
        // The first packet; or the first one after the server's Retry, which says the hello again; or
        // that of a new connection from the same port.
        let opened = self.0.insert(Opened {
            keys,
            pieces: Pieces::default(),
        });
        frames::read(&payload, &mut opened.pieces, most)
    }

    /// Leaves a packet out: it ends only what has not begun.
    const fn unread(&self, reason: NoName) -> Result<(), Stop> {
        if self.is_begun() {
            Ok(())
        } else {
            Err(Stop::No(reason))
        }
    }

    /// Reads the hello, as far as it is there; uses `room` to put it together.
    pub(crate) fn read(&self, most: u16, room: &mut Vec<u8>) -> Result<Found, Stop> {
        let opened = self.0.as_ref().ok_or(Stop::More)?;
        match hello::read(opened.pieces.beginning(room), most) {
            Err(Stop::More) if opened.pieces.is_full(most) => Err(Stop::No(NoName::TooLong)),
            read => read.map(|hello| hello.found(How::Quic, 0)),
        }
    }

    /// Returns the memory that it has allocated, in bytes.
    pub(crate) fn memory(&self) -> usize {
        self.0.as_ref().map_or(0, |opened| opened.pieces.memory())
    }
}
