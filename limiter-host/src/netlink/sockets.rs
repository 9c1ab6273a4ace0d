//! Dumps the sockets of a protocol over IP.

use netlink_packet_sock_diag::{
    SockDiagMessage,
    constants::AF_INET,
    inet::{ExtensionFlags, InetRequest, InetResponse, SocketId, StateFlags},
};

use super::{Channel, DumpError};

/// `INET_DIAG_REQ_BYTECODE`: the attribute with a filter.
const FILTER: u16 = 1;

/// Returns the request for the sockets of a protocol and family in some states.
#[must_use]
pub fn request(protocol: u8, family: u8, states: StateFlags) -> InetRequest {
    InetRequest {
        family,
        protocol,
        extensions: ExtensionFlags::empty(),
        states,
        socket_id: if family == AF_INET {
            SocketId::new_v4()
        } else {
            SocketId::new_v6()
        },
    }
}

/// Dumps the sockets that a [`filter`] accepts; an empty filter accepts all.
pub async fn dump_sockets<T>(
    sockets: &mut Channel,
    request: InetRequest,
    filter: &[u8],
    mut keep: impl FnMut(InetResponse) -> Option<T>,
) -> Result<Vec<T>, DumpError> {
    let keep = |response| match response {
        SockDiagMessage::InetResponse(socket) => keep(*socket),
        _ => None,
    };
    let question = SockDiagMessage::InetRequest(request);
    sockets.dump(question, filter, keep).await
}

/// Encodes a filter attribute from operations, each a `struct inet_diag_bc_op`. A jump exactly to their end
/// accepts a socket, one four bytes beyond it rejects it.
#[must_use]
pub fn filter(operations: &[u8]) -> Vec<u8> {
    let length = u16::try_from(4 + operations.len()).unwrap_or(u16::MAX);
    [&length.to_ne_bytes()[..], &FILTER.to_ne_bytes(), operations].concat()
}
