//! Finds this host's own peers: the name servers of its resolver, and the far ends of its connected UDP sockets
//! and of the TCP connections that it opened.
//!
//! A server may connect its sockets, too. So a connected socket counts only if its port is not served: no TCP
//! socket listens on it, and no unconnected UDP socket is bound to it.

use std::{collections::BTreeSet, fs, net::IpAddr, time::Duration};

use netlink_packet_sock_diag::{
    constants::{AF_INET, AF_INET6, IPPROTO_TCP, IPPROTO_UDP},
    inet::{InetResponse, StateFlags},
};
use rtnetlink::sys::protocols::NETLINK_SOCK_DIAG;
use thiserror::Error;
use tokio::time::timeout;

use super::peers::Peer;
use crate::netlink::{
    Channel, DumpError,
    sockets::{dump_sockets, request},
};

/// The resolver's configuration files. The second has the servers behind the local stub of systemd-resolved.
const RESOLVERS: [&str; 2] = ["/etc/resolv.conf", "/run/systemd/resolve/resolv.conf"];

/// The most sockets to read per dump.
const MOST: usize = 100_000;

/// The timeout of listing sockets.
const PATIENCE: Duration = Duration::from_secs(10);

/// This host's own peers are unknown.
#[derive(Debug, Error)]
pub enum PeersError {
    /// The kernel refused or failed to list sockets.
    #[error("cannot tell whose replies to this host limits count: {0}")]
    Kernel(#[from] DumpError),
    /// The kernel takes too long.
    #[error(
        "cannot tell whose replies to this host limits count: the kernel has not listed its \
         sockets within {PATIENCE:?}"
    )]
    Late,
}

/// Returns this host's own peers, without itself. `by_tcp`: also the peers of TCP connections.
pub(super) async fn peers(by_tcp: bool) -> Result<BTreeSet<Peer>, PeersError> {
    let mut sockets = Channel::new(NETLINK_SOCK_DIAG).with_most(MOST);
    let mut peers = BTreeSet::new();
    let protocols = [false, true].into_iter();
    for of_tcp in protocols.filter(|of_tcp| by_tcp || !of_tcp) {
        let found = timeout(PATIENCE, connected_peers(&mut sockets, of_tcp)).await;
        peers.extend(found.map_err(|_| PeersError::Late)??);
    }
    for file in RESOLVERS {
        // A host may have no resolver.
        let text = fs::read_to_string(file).unwrap_or_default();
        peers.extend(name_servers(&text).map(Peer::name_server));
    }
    peers.retain(|Peer { address, local, .. }| {
        let is_own = local.is_some_and(|(local, _)| local == *address);
        !is_own && !address.is_loopback() && !address.is_unspecified() && !address.is_multicast()
    });
    Ok(peers)
}

fn name_servers(text: &str) -> impl Iterator<Item = IpAddr> {
    text.lines().filter_map(|line| {
        let mut words = line.split_whitespace();
        words.next().filter(|word| *word == "nameserver")?;
        // A link-local address is followed by `%` and its interface.
        let address = words.next()?.split('%').next()?;
        address.parse::<IpAddr>().ok()
    })
}

/// Returns the peers of a protocol's connected sockets, except on ports that this host serves.
async fn connected_peers(sockets: &mut Channel, by_tcp: bool) -> Result<Vec<Peer>, DumpError> {
    let protocol = if by_tcp { IPPROTO_TCP } else { IPPROTO_UDP };
    let mut served = BTreeSet::new();
    for family in [AF_INET, AF_INET6] {
        let port = |socket: InetResponse| Some(socket.header.socket_id.source_port);
        let serving = if by_tcp {
            StateFlags::LISTEN
        } else {
            StateFlags::CLOSE
        };
        let serving = request(protocol, family, serving);
        served.extend(dump_sockets(sockets, serving, &[], port).await?);
    }
    let mut peers = Vec::new();
    for family in [AF_INET, AF_INET6] {
        // Drops clients here, before they are kept: a server may have a million.
        let peer = |socket: InetResponse| {
            let id = socket.header.socket_id;
            (!served.contains(&id.source_port)).then(|| Peer {
                address: id.destination_address.to_canonical(),
                by_tcp,
                port: id.destination_port,
                local: Some((id.source_address.to_canonical(), id.source_port)),
            })
        };
        let connected = request(protocol, family, StateFlags::ESTABLISHED);
        peers.extend(dump_sockets(sockets, connected, &[], peer).await?);
    }
    Ok(peers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_servers_of_a_resolver() {
        let text = "# nameserver 192.0.2.1\nsearch example.org\nnameserver 198.51.100.53\n  \
                    nameserver\tfe80::1%eth0 # ours\nnameserver\nnameserver x\noptions edns0\n";
        let found: Vec<_> = name_servers(text)
            .map(|address| address.to_string())
            .collect();
        assert_eq!(found, ["198.51.100.53", "fe80::1"]);
    }
}
