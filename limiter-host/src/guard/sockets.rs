//! TCP connections to ports on which this machine serves logins.
//!
//! The kernel does not tell which program serves a port, and the sandboxed daemon may not read other processes'
//! descriptors. The kernel does tell a socket's owner: sshd listens and accepts as root, while most other
//! servers bind as root and accept as another user. So a connection counts if root accepted it, on any port on
//! which root listens. This can mistake another server that accepts as root for sshd, but never an ordinary
//! user's server, however it is named.

use std::{collections::BTreeSet, net::IpAddr};

use netlink_packet_sock_diag::{
    constants::{AF_INET, AF_INET6, IPPROTO_TCP},
    inet::{InetResponse, StateFlags},
};

use crate::netlink::{
    Channel, DumpError,
    sockets::{dump_sockets, filter, request},
};

const ROOT: u32 = 0;

/// `INET_DIAG_BC_D_COND`: the filter's test of the peer.
const PEER_IS: u8 = 8;

/// A connection to a port of this machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Connection {
    pub(super) local: IpAddr,
    pub(super) port: u16,
}

pub(super) async fn root_ports(sockets: &mut Channel) -> Result<BTreeSet<u16>, DumpError> {
    let mut ports = BTreeSet::new();
    for family in [AF_INET, AF_INET6] {
        let of_root = |socket: InetResponse| {
            let header = socket.header;
            (header.uid == ROOT).then_some(header.socket_id.source_port)
        };
        let request = request(IPPROTO_TCP, family, StateFlags::LISTEN);
        ports.extend(dump_sockets(sockets, request, &[], of_root).await?);
    }
    Ok(ports)
}

/// Returns a peer's connections to `ports` that root accepted.
pub(super) async fn of_peer(
    sockets: &mut Channel,
    peer: IpAddr,
    ports: &BTreeSet<u16>,
) -> Result<Vec<Connection>, DumpError> {
    // A dual-stack socket shows IPv4 peers as IPv6 addresses, but their packets are IPv4.
    let families: &[u8] = match peer {
        IpAddr::V4(_) => &[AF_INET, AF_INET6],
        IpAddr::V6(_) => &[AF_INET6],
    };
    let peer_is = condition(peer);
    let mut connections = Vec::new();
    for family in families {
        let served = |socket: InetResponse| {
            let header = socket.header;
            let id = header.socket_id;
            let is_served = header.uid == ROOT
                && id.destination_address.to_canonical() == peer
                && ports.contains(&id.source_port);
            is_served.then_some(Connection {
                local: id.source_address.to_canonical(),
                port: id.source_port,
            })
        };
        let request = request(IPPROTO_TCP, *family, StateFlags::ESTABLISHED);
        let found = dump_sockets(sockets, request, &peer_is, served);
        connections.extend(found.await?);
    }
    // The kernel lists one row for each connection, in no order.
    connections.sort_unstable_by_key(|connection| (connection.port, connection.local));
    connections.dedup();
    Ok(connections)
}

/// Returns the filter that restricts the dump to connections with one peer, since a server may have a million
/// others. An IPv4 address also matches the IPv6 address that maps it.
fn condition(peer: IpAddr) -> Vec<u8> {
    const ANY_PORT: i32 = -1;
    let (family, bits, address) = match peer {
        IpAddr::V4(address) => (AF_INET, 32, address.octets().to_vec()),
        IpAddr::V6(address) => (AF_INET6, 128, address.octets().to_vec()),
    };
    // struct inet_diag_hostcond
    let mut condition = vec![family, bits, 0, 0];
    condition.extend(ANY_PORT.to_ne_bytes());
    condition.extend(address);
    let yes = 4 + u8::try_from(condition.len()).unwrap_or(u8::MAX);
    let mut operation = vec![PEER_IS, yes];
    operation.extend((u16::from(yes) + 4).to_ne_bytes());
    operation.extend(condition);
    filter(&operation)
}
