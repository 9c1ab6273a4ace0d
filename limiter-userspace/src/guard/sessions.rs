//! The SSH sessions: the one that this process belongs to, and those that the kernel knows of. A
//! service, or a command under sudo, has none of its own.

use std::{env, net::IpAddr};

use futures_util::StreamExt as _;
use netlink_packet_sock_diag::{
    SockDiagMessage,
    constants::{AF_INET, AF_INET6, IPPROTO_TCP},
    inet::{ExtensionFlags, InetRequest, SocketId, StateFlags},
};
use rtnetlink::{
    packet_core::{NLM_F_DUMP, NLM_F_REQUEST, NetlinkHeader, NetlinkMessage, NetlinkPayload},
    proto,
    sys::{SocketAddr, protocols::NETLINK_SOCK_DIAG},
};
use tracing::debug;

use super::{GatherError, Guarded, Why};

/// The port of SSH unless another is known.
pub(super) const SSH: u16 = 22;

/// The session that this process was started from, as sshd(8) tells it.
pub(super) fn own() -> Option<Guarded> {
    from_environment(&env::var("SSH_CONNECTION").ok()?)
}

/// From the peer's address and port and this machine's, with spaces between them.
pub(super) fn from_environment(connection: &str) -> Option<Guarded> {
    let mut parts = connection.split(' ');
    let mut next = || parts.next();
    let (peer, _, local, port) = (next()?, next()?, next()?, next()?);
    // A link-local address has the name of its interface behind it.
    let address = |text: &str| text.split('%').next()?.parse().ok();
    Some(session(address(peer)?, address(local)?, port.parse().ok()?))
}

/// The peers of the connections to a port of this machine that are established.
pub(super) async fn established(port: u16) -> Result<Vec<Guarded>, GatherError> {
    let (connection, handle, _) = proto::new_connection(NETLINK_SOCK_DIAG)?;
    let connection = tokio::spawn(connection);
    let mut sessions = Vec::new();
    for (family, any) in [
        (AF_INET, SocketId::new_v4()),
        (AF_INET6, SocketId::new_v6()),
    ] {
        let request = InetRequest {
            family,
            protocol: IPPROTO_TCP,
            extensions: ExtensionFlags::empty(),
            states: StateFlags::ESTABLISHED,
            socket_id: SocketId {
                source_port: port,
                ..any
            },
        };
        let mut header = NetlinkHeader::default();
        header.flags = NLM_F_REQUEST | NLM_F_DUMP;
        let request = NetlinkMessage::new(header, SockDiagMessage::InetRequest(request).into());
        let mut answers = handle.request(request, SocketAddr::new(0, 0))?;
        while let Some(answer) = answers.next().await {
            match answer.payload {
                NetlinkPayload::InnerMessage(SockDiagMessage::InetResponse(socket)) => {
                    let id = socket.header.socket_id;
                    sessions.push(session(id.destination_address, id.source_address, port));
                }
                // Of one family: a kernel may be without.
                NetlinkPayload::Error(error) => debug!("no sockets are told: {error}"),
                _ => {}
            }
        }
    }
    connection.abort();
    // The kernel tells them in no order.
    sessions.sort_unstable();
    Ok(sessions)
}

/// A socket of both families has IPv4 peers under IPv6 addresses; their packets have not.
fn session(peer: IpAddr, local: IpAddr, port: u16) -> Guarded {
    Guarded {
        address: peer.to_canonical(),
        why: Why::Ssh {
            local: local.to_canonical(),
            port,
        },
    }
}
