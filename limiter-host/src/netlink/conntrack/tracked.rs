//! A TCP connection in the kernel's connection tracking.

use std::net::{IpAddr, SocketAddr};

use rtnetlink::packet_core::{
    DecodeError, NlasIterator, parse_ip, parse_u8, parse_u16_be, parse_u32_be,
};

/// The attributes of a connection: `CTA_TUPLE_ORIG` and so on.
pub(super) const ORIGINAL: u16 = 1;
const REPLY: u16 = 2;
pub(super) const STATUS: u16 = 3;
const PROTOCOL_INFO: u16 = 4;
const ID: u16 = 12;

/// The attributes of a tuple: `CTA_TUPLE_IP` and `CTA_TUPLE_PROTO`.
const ADDRESSES: u16 = 1;
pub(super) const PROTOCOL: u16 = 2;

/// The attributes of its addresses: `CTA_IP_V4_SRC` and so on.
const V4_SOURCE: u16 = 1;
const V4_DESTINATION: u16 = 2;
const V6_SOURCE: u16 = 3;
const V6_DESTINATION: u16 = 4;

/// The attributes of its protocol: `CTA_PROTO_NUM` and so on.
pub(super) const NUMBER: u16 = 1;
const SOURCE_PORT: u16 = 2;
const DESTINATION_PORT: u16 = 3;

/// `CTA_PROTOINFO_TCP`, and in it `CTA_PROTOINFO_TCP_STATE`.
const TCP_INFO: u16 = 1;
const TCP_STATE: u16 = 1;

/// `IPS_ASSURED`: packets were seen both ways, and for TCP the end of the handshake.
pub(super) const ASSURED: u32 = 1 << 2;

/// `IPPROTO_TCP`.
pub(super) const TCP: u8 = 6;

/// The first and last state of an open connection in `enum tcp_conntrack`: from established to waiting for the
/// last ACK.
const ESTABLISHED: u8 = 3;
const LAST_ACK: u8 = 6;

/// The addresses and ports of packets of one direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Tuple {
    /// The source of the packets.
    pub source: SocketAddr,
    /// Their destination.
    pub destination: SocketAddr,
}

impl Tuple {
    /// Returns the tuple of the other direction, in the absence of address translation.
    #[must_use]
    pub const fn reversed(&self) -> Self {
        Self {
            source: self.destination,
            destination: self.source,
        }
    }
}

/// A connection that the kernel tracks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TrackedConnection {
    /// The kernel's id, a keyed hash.
    pub id: u32,
    /// The tuple of the opener's packets, before any translation.
    pub original: Tuple,
    /// The tuple of the other side's packets, before translation back.
    pub reply: Tuple,
    is_assured: bool,
    /// `None`: the message has no state.
    state: Option<u8>,
}

impl TrackedConnection {
    /// Returns whether the connection is open; `None`: the message has no state.
    #[must_use]
    pub fn is_open(&self) -> Option<bool> {
        let state = self.state?;
        Some(self.is_assured && (ESTABLISHED..=LAST_ACK).contains(&state))
    }

    /// Makes an open connection with the same tuple both ways.
    /// A connection for tests.
    #[cfg(any(test, feature = "testing"))]
    #[must_use]
    pub const fn testing(id: u32, tuple: Tuple) -> Self {
        Self {
            id,
            original: tuple,
            reply: tuple,
            is_assured: true,
            state: Some(ESTABLISHED),
        }
    }

    /// Reads the attributes of a connection; `None`: it is not TCP.
    pub(super) fn read(attributes: &[u8]) -> Result<Option<Self>, DecodeError> {
        let (mut id, mut status, mut state) = (None, 0, None);
        let (mut original, mut reply) = (None, None);
        for attribute in NlasIterator::new(attributes) {
            let attribute = attribute?;
            let value = attribute.value();
            match attribute.kind() {
                ORIGINAL => original = tuple(value)?,
                REPLY => reply = tuple(value)?,
                STATUS => status = parse_u32_be(value)?,
                PROTOCOL_INFO => state = tcp_state(value)?,
                ID => id = Some(parse_u32_be(value)?),
                _ => {}
            }
        }
        let (Some(id), Some(original), Some(reply)) = (id, original, reply) else {
            return Ok(None);
        };
        Ok(Some(Self {
            id,
            original,
            reply,
            is_assured: status & ASSURED != 0,
            state,
        }))
    }
}

/// Reads a tuple; `None`: it is not TCP.
fn tuple(attributes: &[u8]) -> Result<Option<Tuple>, DecodeError> {
    let (mut addresses, mut ports) = (None, None);
    for attribute in NlasIterator::new(attributes) {
        let attribute = attribute?;
        match attribute.kind() {
            ADDRESSES => addresses = self::addresses(attribute.value())?,
            PROTOCOL => ports = self::ports(attribute.value())?,
            _ => {}
        }
    }
    let both = addresses.zip(ports);
    Ok(both.map(|(addresses, ports)| Tuple {
        source: SocketAddr::new(addresses.0, ports.0),
        destination: SocketAddr::new(addresses.1, ports.1),
    }))
}

fn addresses(attributes: &[u8]) -> Result<Option<(IpAddr, IpAddr)>, DecodeError> {
    let (mut source, mut destination) = (None, None);
    for attribute in NlasIterator::new(attributes) {
        let attribute = attribute?;
        match attribute.kind() {
            V4_SOURCE | V6_SOURCE => source = Some(parse_ip(attribute.value())?),
            V4_DESTINATION | V6_DESTINATION => destination = Some(parse_ip(attribute.value())?),
            _ => {}
        }
    }
    Ok(source.zip(destination))
}

/// Reads both ports; `None`: they are not TCP ports.
fn ports(attributes: &[u8]) -> Result<Option<(u16, u16)>, DecodeError> {
    let (mut number, mut source, mut destination) = (None, None, None);
    for attribute in NlasIterator::new(attributes) {
        let attribute = attribute?;
        let value = attribute.value();
        match attribute.kind() {
            NUMBER => number = Some(parse_u8(value)?),
            SOURCE_PORT => source = Some(parse_u16_be(value)?),
            DESTINATION_PORT => destination = Some(parse_u16_be(value)?),
            _ => {}
        }
    }
    Ok(source.zip(destination).filter(|_| number == Some(TCP)))
}

/// Reads the state of a TCP connection; `None`: the attribute is absent.
fn tcp_state(attributes: &[u8]) -> Result<Option<u8>, DecodeError> {
    let mut state = None;
    for attribute in NlasIterator::new(attributes) {
        let attribute = attribute?;
        if attribute.kind() != TCP_INFO {
            continue;
        }
        for attribute in NlasIterator::new(attribute.value()) {
            let attribute = attribute?;
            if attribute.kind() == TCP_STATE {
                state = Some(parse_u8(attribute.value())?);
            }
        }
    }
    Ok(state)
}
