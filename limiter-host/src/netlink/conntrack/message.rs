//! Messages to and from the kernel's connection tracking.

use rtnetlink::packet_core::{
    DecodeError, NetlinkDeserializable, NetlinkHeader, NetlinkSerializable,
};

use super::tracked::{ASSURED, STATUS, TrackedConnection};

/// `NFNL_SUBSYS_CTNETLINK`, the subsystem, in the higher byte of a message's type.
const SUBSYSTEM: u16 = 1 << 8;

/// The lower byte: `IPCTNL_MSG_CT_NEW`, `IPCTNL_MSG_CT_GET` and `IPCTNL_MSG_CT_DELETE`.
const NEW: u16 = SUBSYSTEM;
const GET: u16 = SUBSYSTEM | 1;
const DELETE: u16 = SUBSYSTEM | 2;

/// The length of `struct nfgenmsg` before the attributes, in bytes. All zero means every family.
pub(super) const HEADER: usize = 4;

#[derive(Debug)]
pub(super) enum Message {
    /// The request for all connections.
    Request,
    /// A connection that exists; `None`: not TCP.
    There(Option<TrackedConnection>),
    /// A connection that ended; `None`: not TCP.
    Gone(Option<TrackedConnection>),
    /// Any other message.
    Other,
}

/// Returns the attribute of a request that selects connections with packets seen both ways. A kernel that does
/// not know the attribute reports all connections.
pub(super) fn assured() -> [u8; 8] {
    let mut bytes = [0; 8];
    bytes[..2].copy_from_slice(&8_u16.to_ne_bytes());
    bytes[2..4].copy_from_slice(&STATUS.to_ne_bytes());
    bytes[4..].copy_from_slice(&ASSURED.to_be_bytes());
    bytes
}

impl NetlinkSerializable for Message {
    fn message_type(&self) -> u16 {
        GET
    }

    fn buffer_len(&self) -> usize {
        HEADER
    }

    fn serialize(&self, buffer: &mut [u8]) {
        buffer[..HEADER].fill(0);
    }
}

impl NetlinkDeserializable for Message {
    type Error = DecodeError;

    fn deserialize(header: &NetlinkHeader, payload: &[u8]) -> Result<Self, DecodeError> {
        let attributes = payload.get(HEADER..).unwrap_or_default();
        Ok(match header.message_type {
            NEW => Self::There(TrackedConnection::read(attributes)?),
            DELETE => Self::Gone(TrackedConnection::read(attributes)?),
            _ => Self::Other,
        })
    }
}
