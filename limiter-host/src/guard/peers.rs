//! This host's own peers: the servers that it queries, and the limits that count their replies.
//!
//! The host's own TCP connections are exempt, unless the policy says otherwise. A UDP reply is a packet like
//! any other.

use std::{collections::BTreeSet, net::IpAddr, ops::RangeInclusive};

use limiter_policy::policy::{
    Limit, Listing, Match, Mode, OwnConnections, Policy, Rate, TcpFlags, configured_name,
};
use serde::Serialize;

use super::{
    lockout::budget_key,
    packets::{Packets, Ports},
};

/// The default range of a host's ephemeral ports.
const EPHEMERAL: RangeInclusive<u16> = 32_768..=u16::MAX;

const DNS: u16 = 53;

/// A peer of this host, and the destination of its replies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Peer {
    pub(super) address: IpAddr,
    /// Whether the host uses TCP; otherwise UDP.
    pub(super) by_tcp: bool,
    /// The peer's port.
    pub(super) port: u16,
    /// This host's address and port; `None`: they vary.
    pub(super) local: Option<(IpAddr, u16)>,
}

/// A peer with replies that limits count.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub struct CountedPeer<'p> {
    /// Its address.
    pub address: IpAddr,
    /// `udp` or `tcp`.
    pub protocol: &'static str,
    /// The peer's port.
    pub port: u16,
    /// The limits that count its replies.
    pub limits: Vec<PeerBudget<'p>>,
}

/// A peer's budget at a limit.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub struct PeerBudget<'p> {
    /// The limit's name.
    pub limit: &'p str,
    /// The unit that the limit counts.
    pub cost: &'static str,
    /// The rate as in a configuration file.
    pub rate: String,
}

/// Returns whether replies by TCP count, too.
pub(super) fn are_tcp_replies_counted(policy: &Policy) -> bool {
    policy.own_connections == OwnConnections::Limit
}

/// Returns the peers with replies that an enforcing limit by address or range counts, each once.
pub(super) fn counted<'p>(policy: &'p Policy, peers: &BTreeSet<Peer>) -> Vec<CountedPeer<'p>> {
    let mut counted: Vec<CountedPeer<'p>> = Vec::new();
    for peer in peers {
        let is_exempt = peer.by_tcp && !are_tcp_replies_counted(policy);
        if is_exempt || policy.listing_of(peer.address) != Listing::default() {
            continue;
        }
        let limits = policy.limits.iter();
        let limits: Vec<_> = limits
            .filter_map(|limit| budget(policy, limit, peer))
            .collect();
        let is_same = |reported: &CountedPeer<'_>| {
            (reported.address, reported.protocol, reported.port)
                == (peer.address, peer.protocol(), peer.port)
        };
        if limits.is_empty() || counted.last().is_some_and(is_same) {
            continue;
        }
        counted.push(CountedPeer {
            address: peer.address,
            protocol: peer.protocol(),
            port: peer.port,
            limits,
        });
    }
    counted
}

/// Returns a peer's budget at a limit; `None`: the limit does not count its replies.
fn budget<'p>(policy: &'p Policy, limit: &'p Limit, peer: &Peer) -> Option<PeerBudget<'p>> {
    let address = peer.address;
    if limit.mode != Mode::Enforce
        || limit.id_format.key_part().is_some()
        || policy.listing_with(limit, address) != Listing::default()
        || !peer.replies().are_counted_by(limit)
    {
        return None;
    }
    budget_key(policy, limit, address)?;
    let rate: Rate = match policy.override_of(limit, address) {
        Some(other) => other.rate,
        None => limit.default?,
    };
    Some(PeerBudget {
        limit: configured_name(&limit.name),
        cost: limit.cost.name(),
        rate: rate.shown(limit.strategy),
    })
}

impl Peer {
    /// Makes a name server, which is queried from any port.
    pub(super) const fn name_server(address: IpAddr) -> Self {
        Self {
            address,
            by_tcp: false,
            port: DNS,
            local: None,
        }
    }

    const fn protocol(&self) -> &'static str {
        if self.by_tcp { "tcp" } else { "udp" }
    }

    fn replies(&self) -> Packets {
        let (destination, ports) = match self.local {
            Some((address, port)) => (Some(address), port..=port),
            None => (None, EPHEMERAL),
        };
        Packets {
            protocol: if self.by_tcp { Match::TCP } else { Match::UDP },
            ports: Some(Ports {
                source: self.port..=self.port,
                destination: ports,
            }),
            tcp_flags: self.by_tcp.then_some(TcpFlags::ACK),
            icmp_types: &[],
            destination,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use limiter_policy::testing;

    fn by_udp(address: &str, port: u16, local: Option<u16>) -> Peer {
        Peer {
            address: address.parse().unwrap(),
            by_tcp: false,
            port,
            local: local.map(|port| ("192.0.2.1".parse().unwrap(), port)),
        }
    }

    /// Returns address, protocol, port and limits of each counted peer.
    fn counted_by(peers: &[Peer], configuration: &str) -> Vec<String> {
        let policy = testing::policy(configuration);
        let peers = peers.iter().copied().collect();
        let counted = counted(&policy, &peers).into_iter();
        let reported = counted.map(|peer| {
            let limits = peer.limits.iter();
            let limits =
                limits.map(|budget| format!("{} {} {}", budget.limit, budget.cost, budget.rate));
            let limits = limits.collect::<Vec<_>>().join(", ");
            format!("{} {} {}: {limits}", peer.address, peer.protocol, peer.port)
        });
        reported.collect()
    }

    const RESOLVER: &str = "198.51.100.53";
    const PACKETS: &str = "limits: {PacketsPerIPAddress: {burst: 20, count: 10, period: 1s}}";
    const OF_RESOLVER: &str =
        "198.51.100.53 udp 53: PacketsPerIPAddress packets {burst: 20, count: 10, period: 1s}";

    #[test]
    fn replies_that_a_limit_counts() {
        let resolver = by_udp(RESOLVER, 53, None);
        assert_eq!(counted_by(&[resolver], PACKETS), [OF_RESOLVER]);
        // Queries from several ports yield one row.
        let sockets = [
            by_udp(RESOLVER, 53, Some(40_000)),
            by_udp(RESOLVER, 53, Some(40_001)),
        ];
        let all = [&sockets[..], &[resolver]].concat();
        assert_eq!(counted_by(&all, PACKETS), [OF_RESOLVER]);
        let ntp = by_udp("2001:db8::123", 123, Some(123));
        let both = counted_by(&[resolver, ntp], PACKETS);
        assert!(
            both.len() == 2 && both[1].starts_with("2001:db8::123 udp 123: "),
            "{both:?}"
        );
    }

    #[test]
    fn what_does_not_concern_them() {
        let resolver = by_udp(RESOLVER, 53, None);
        let socket = by_udp(RESOLVER, 53, Some(40_000));
        let rate = "burst: 20, count: 10, period: 1s";
        for (more, of_any, of_socket) in [
            ("", 1, 1),
            ("mode: observe", 0, 0),
            ("exclude: 198.51.100.0/24", 0, 0),
            ("match: {protocol: tcp}", 0, 0),
            ("match: {protocol: udp, destination-port: [53, 443]}", 0, 0),
            (
                "match: {protocol: udp, destination-port: [39000-40000]}",
                1,
                1,
            ),
            (
                "match: {protocol: udp, destination-port: [40001-41000]}",
                1,
                0,
            ),
            ("match: {protocol: udp, source-port: 53}", 1, 1),
            ("match: {protocol: udp, source-port: 123}", 0, 0),
            ("match: {destination: 192.0.2.1}", 1, 1),
            ("match: {destination: 192.0.2.2}", 1, 0),
        ] {
            let configuration =
                format!("limits: {{Own: {{id: ipAddress, cost: packets, {rate}, {more}}}}}");
            let counts = [resolver, socket].map(|peer| counted_by(&[peer], &configuration).len());
            assert_eq!(counts, [of_any, of_socket], "{more}");
        }
        // Lists for all limits.
        for list in ["exclude", "block"] {
            let listed = format!("{PACKETS}\n{list}: {RESOLVER}");
            assert_eq!(counted_by(&[resolver], &listed), [""; 0], "{list}");
        }
        let total = format!("limits: {{Own: {{id: total, cost: packets, {rate}}}}}");
        assert_eq!(counted_by(&[resolver], &total), [""; 0]);
        let other =
            format!("{PACKETS}\noverrides: {{PacketsPerIPAddress:{RESOLVER}: {{rate: 7/s}}}}");
        assert!(counted_by(&[resolver], &other)[0].ends_with("{burst: 7, count: 7, period: 1s}"));
    }

    #[test]
    fn own_connections_count_where_the_policy_says_so() {
        let web = Peer {
            by_tcp: true,
            ..by_udp("203.0.113.80", 443, Some(40_000))
        };
        assert_eq!(counted_by(&[web], PACKETS), [""; 0]);
        let limited = format!("own-connections: limit\n{PACKETS}");
        let reported = counted_by(&[web], &limited);
        assert!(
            reported[0].starts_with("203.0.113.80 tcp 443: PacketsPerIPAddress"),
            "{reported:?}"
        );
        // The host's SYN opens the connection, not the reply.
        let opening = "limits: {NewConnectionsPerIPAddress: {burst: 20, count: 10, period: 1s}}";
        let limited = format!("own-connections: limit\n{opening}");
        assert_eq!(counted_by(&[web], &limited), [""; 0]);
    }
}
