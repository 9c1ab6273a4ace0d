//! QUIC: the ClientHello in a client's Initial packets (RFC 9000, RFC 9001, RFC 9369).
//!
//! The client's first packet carries the key's input in clear text, so any observer can decrypt these packets. A hello
//! takes several packets and datagrams, in any order, and browsers shuffle its parts within each.

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
    outcome::{FoundName, NameSource, NoName, Stop},
    pieces::Pieces,
};

/// A connection with an incomplete hello, once one of its packets has been opened.
#[derive(Debug, Default)]
pub(crate) struct Quic(Option<QuicState>);

#[derive(Debug)]
struct QuicState {
    keys: Keys,
    pieces: Pieces,
}

impl Quic {
    /// Whether a packet has been opened.
    pub(crate) const fn is_begun(&self) -> bool {
        self.0.is_some()
    }

    /// Adds the handshake bytes in the Initial packets of a client's datagram, as far as they are among the first
    /// `most`. Packets that cannot be opened are ignored.
    pub(crate) fn add(&mut self, datagram: &[u8], most: u16) -> Result<(), Stop> {
        let mut rest = datagram;
        let mut connection = None;
        while !rest.is_empty() {
            let header = match Header::read(rest) {
                Ok(header) => header,
                // Any bytes may follow the first packet; and anyone can send bytes that are not QUIC, so they must not
                // end a connection that has begun.
                Err(_) if connection.is_some() || self.is_begun() => break,
                Err(reason) => return Err(Stop::No(reason)),
            };
            // Packets of one datagram belong to one connection.
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

    /// Opens a packet, with the connection's key or a key derived from the packet.
    fn open(&mut self, packet: &[u8], header: &Header, most: u16) -> Result<(), Stop> {
        // The key does not change when the server chooses a connection ID, so the connection's own key comes first.
        if let Some(opened) = &mut self.0
            && let Some(payload) = opened.keys.open(packet, header.number_at)
        {
            return frames::read(&payload, &mut opened.pieces, most);
        }
        let keys = Keys::of_client(header.version, header.connection.as_slice());
        let Some(payload) = keys.open(packet, header.number_at) else {
            return self.unread(NoName::Undecryptable);
        };
        // The first packet; or the first one after the server's Retry, which repeats the hello; or the first one of a
        // new connection from the same port.
        let opened = self.0.insert(QuicState {
            keys,
            pieces: Pieces::default(),
        });
        frames::read(&payload, &mut opened.pieces, most)
    }

    /// Skips a packet. Ends the flow only if no packet has been opened.
    const fn unread(&self, reason: NoName) -> Result<(), Stop> {
        if self.is_begun() {
            Ok(())
        } else {
            Err(Stop::No(reason))
        }
    }

    /// Reads the hello, as far as it is received; uses `room` to put it together.
    pub(crate) fn read(&self, most: u16, room: &mut Vec<u8>) -> Result<FoundName, Stop> {
        let opened = self.0.as_ref().ok_or(Stop::More)?;
        match hello::read(opened.pieces.beginning(room), most) {
            Err(Stop::More) if opened.pieces.is_full(most) => Err(Stop::No(NoName::TooLong)),
            read => read.map(|hello| hello.found(NameSource::Quic, None)),
        }
    }

    /// The allocated memory, in bytes.
    pub(crate) fn memory(&self) -> usize {
        self.0.as_ref().map_or(0, |opened| opened.pieces.memory())
    }
}
