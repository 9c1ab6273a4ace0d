//! The flows with names to read, and the pieces in which they come.

use std::net::IpAddr;

/// A flow from a client to a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Flow {
    /// The client's address.
    pub client: IpAddr,
    /// The server's address.
    pub server: IpAddr,
    /// The client's port.
    pub client_port: u16,
    /// The server's port.
    pub server_port: u16,
    /// The transport protocol.
    pub protocol: Protocol,
}

/// A transport protocol that carries server names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Protocol {
    /// TCP, which carries TLS and HTTP.
    Tcp,
    /// UDP, which carries QUIC.
    Udp,
}

/// The content of a packet from the client to the server.
#[derive(Clone, Copy, Debug)]
pub enum Segment<'a> {
    /// A segment of a TCP connection.
    Tcp {
        /// The sequence number of the first byte of the payload.
        sequence: u32,
        /// The sequence number of the connection's first byte, one more than the SYN's; `None`: the SYN was not seen.
        first: Option<u32>,
        /// The payload, or its first bytes.
        payload: &'a [u8],
    },
    /// A whole UDP datagram.
    Udp {
        /// The payload.
        payload: &'a [u8],
    },
}

impl Segment<'_> {
    /// Whether it has no payload.
    pub(crate) const fn is_empty(&self) -> bool {
        match self {
            Self::Tcp { payload, .. } | Self::Udp { payload } => payload.is_empty(),
        }
    }
}
