//! The clients of the demonstration.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use ipnet::{IpNet, Ipv4Net, Ipv6Net};

/// The limit of each address.
pub(super) const ADDRESS_LIMIT: &str = "ServicePacketsPerIPAddress";

/// The limit that an IPv6 range's addresses share.
pub(super) const RANGE_LIMIT: &str = "ServicePacketsPerIPv6Range";

const SERVER_V4: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 1);
const SERVER_V6: Ipv6Addr = Ipv6Addr::new(0xfd77, 0, 0, 0, 0, 0, 0, 1);
/// A privileged port: the limits count no others.
const PORT: u16 = 900;
const RANGE_PREFIX: u8 = 48;

/// A client's behaviour, which determines the expected outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// Stays below its limit.
    Within,
    /// Sends a hundred times its limit.
    Flood,
    /// Stays below its limit, which an override raised.
    Override,
    /// Stays below its own limit; four of them together exceed their range's.
    Shared,
}

/// A source of packets.
#[derive(Clone, Copy, Debug)]
pub(super) struct Client {
    pub(super) address: IpAddr,
    pub(super) per_second: u32,
    pub(super) role: Role,
}

impl Client {
    const fn v4(host: u8, per_second: u32, role: Role) -> Self {
        Self {
            address: IpAddr::V4(Ipv4Addr::new(10, 77, 0, host)),
            per_second,
            role,
        }
    }

    const fn v6(host: u16) -> Self {
        Self {
            address: IpAddr::V6(Ipv6Addr::new(0xfd77, 1, 1, 0, 0, 0, 0, host)),
            per_second: 150,
            role: Role::Shared,
        }
    }

    /// Returns the address and port of the server.
    pub(super) fn destination(&self) -> SocketAddr {
        match self.address {
            IpAddr::V4(_) => SocketAddr::from((SERVER_V4, PORT)),
            IpAddr::V6(_) => SocketAddr::from((SERVER_V6, PORT)),
        }
    }

    fn network(&self) -> IpNet {
        let length = match self.address {
            IpAddr::V4(_) => 24,
            IpAddr::V6(_) => RANGE_PREFIX,
        };
        IpNet::new_assert(self.address, length)
    }
}

impl Role {
    /// Describes the role for the screen.
    pub(super) fn description(self) -> &'static str {
        match self {
            Self::Within => "keeps within its limit",
            Self::Flood => "floods",
            Self::Override => "has an override",
            Self::Shared => "one of four in a /48",
        }
    }
}

pub(super) const CLIENTS: [Client; 7] = [
    Client::v4(2, 100, Role::Within),
    Client::v4(3, 20_000, Role::Flood),
    Client::v4(4, 800, Role::Override),
    Client::v6(1),
    Client::v6(2),
    Client::v6(3),
    Client::v6(4),
];

pub(super) fn port() -> u16 {
    PORT
}

/// Returns the addresses of the client's end.
pub(super) fn addresses() -> Vec<IpNet> {
    CLIENTS.iter().map(Client::network).collect()
}

pub(super) fn server_addresses() -> [IpNet; 2] {
    [
        Ipv4Net::new_assert(SERVER_V4, 24).into(),
        Ipv6Net::new_assert(SERVER_V6, 64).into(),
    ]
}

/// Returns the range that the IPv6 clients share.
pub(super) fn range() -> Option<IpNet> {
    let shared = |client: &&Client| client.role == Role::Shared;
    Some(CLIENTS.iter().find(shared)?.network().trunc())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shared_clients_share_the_range() {
        let range = range().unwrap();
        assert_eq!(range.to_string(), "fd77:1:1::/48");
        for client in CLIENTS {
            let inside = range.contains(&client.address);
            assert_eq!(inside, client.role == Role::Shared, "{client:?}");
        }
    }
}
