//! The packets that a limit counts, by its match and its cost, compared with another limit's.

use ipnet::IpNet;
use limiter_common::{
    address::Family,
    limit::{Cost, IdFormat},
    packet::{
        FLAG_ACK, FLAG_RST, FLAG_SYN, PROTOCOL_TCP, PROTOCOLS_WITH_PORTS, PacketKind, TcpState,
    },
    standing::Standing,
};

use super::{Fragments, IcmpTypes, Limit, Match, Mode, PortRange, TcpFlags, dns_name::has_names};

/// The flags of TCP segments that open a connection.
const OPENS_CONNECTION: TcpFlags = TcpFlags {
    set: FLAG_SYN,
    clear: FLAG_ACK,
};

impl Limit {
    /// Returns the protocols that it counts; empty: all.
    ///
    /// A match on a field of the transport header restricts the protocols to the ones with this field, since
    /// a later fragment reveals only its protocol.
    #[must_use]
    pub fn protocols(&self) -> &[u8] {
        if !self.matching.protocols.is_empty() {
            &self.matching.protocols
        } else if self.matching.needs_tcp() || self.counts_by_server_name() {
            &[PROTOCOL_TCP]
        } else if !self.matching.icmp_types.is_empty() {
            self.matching.icmp_types.protocols()
        } else if self.matching.needs_ports() {
            &PROTOCOLS_WITH_PORTS
        } else {
            &[]
        }
    }

    /// Returns whether it counts open connections.
    #[must_use]
    pub fn counts_connections(&self) -> bool {
        self.cost == Cost::Connections && self.mode != Mode::Off
    }

    /// Returns whether it counts completed handshakes.
    #[must_use]
    pub fn counts_handshakes(&self) -> bool {
        self.cost == Cost::Handshakes && self.mode != Mode::Off
    }

    /// Returns the connection states of the segments that it counts; empty: it counts any packet.
    #[must_use]
    pub fn tcp_states(&self) -> &[TcpState] {
        if self.cost == Cost::Handshakes {
            &[TcpState::New]
        } else {
            &self.matching.tcp_states
        }
    }

    /// Returns whether it counts packets by their DNS question. Packets without a question are not counted.
    #[must_use]
    pub fn counts_by_question(&self) -> bool {
        self.name_kind().is_some()
            || !self.matching.dns.is_everything()
            || self.cost == Cost::NewNames
    }

    /// Returns whether it counts packets by the server name of their connection or QUIC flow. Packets without
    /// a known name are not counted.
    #[must_use]
    pub fn counts_by_server_name(&self) -> bool {
        self.id_format == IdFormat::ServerName || !self.matching.server_names.is_empty()
    }

    /// Returns whether packets spend its tokens.
    #[must_use]
    pub const fn is_spent_by_packets(&self) -> bool {
        match self.cost {
            Cost::Packets | Cost::Bytes | Cost::NewConnections | Cost::NewNames => true,
            Cost::Connections | Cost::Handshakes => false,
        }
    }

    /// Returns the conditions on the flags of the TCP segments that it counts.
    pub fn tcp_flags(&self) -> impl Iterator<Item = TcpFlags> {
        let opens_connection = (self.cost == Cost::NewConnections).then_some(OPENS_CONNECTION);
        self.matching.tcp_flags.into_iter().chain(opens_connection)
    }

    /// Returns whether it counts a TCP segment with these flags.
    #[must_use]
    pub fn counts_segment(&self, flags: u8) -> bool {
        // The segments that may open a connection: the first (SYN), and the last of the handshake (ACK).
        let may_open = match flags & (FLAG_SYN | FLAG_ACK | FLAG_RST) {
            FLAG_SYN | FLAG_ACK => true,
            _ => self.is_spent_by_packets(),
        };
        let has = |one: TcpFlags| flags & one.set == one.set && flags & one.clear == 0;
        may_open && self.tcp_flags().all(has)
    }

    /// Returns whether it counts a message of a protocol and a type.
    #[must_use]
    pub fn counts_message(&self, protocol: u8, number: u8, is_neighbour_discovery: bool) -> bool {
        let types = &self.matching.icmp_types;
        if is_neighbour_discovery {
            types.names(protocol, number)
        } else {
            types.has(protocol, number)
        }
    }

    /// Returns whether it counts any packets of that family.
    #[must_use]
    pub fn counts_any(&self, family: Family) -> bool {
        let destinations = &self.matching.destinations;
        let protocols = self.protocols();
        self.id_format.is_for(family)
            && (destinations.is_empty() || destinations.iter().any(|one| is_of(family, one)))
            && (protocols.is_empty() || !protocols.iter().all(|one| is_never(family, *one)))
    }

    /// Returns whether it counts every packet of that family from known sources that the other counts, and
    /// charges at least a token where the other charges one; bytes count as fewer than packets. Ignores
    /// lists.
    #[must_use]
    pub fn counts_all(&self, family: Family, other: &Self) -> bool {
        let (mine, its) = (&self.matching, &other.matching);
        self.counts_any(family)
            && self.is_spent_by_packets()
            && (self.cost == Cost::Packets || self.cost == other.cost)
            && self.counts_protocols(family, other)
            && has_ports(&mine.source_ports, &its.source_ports)
            && has_ports(&mine.destination_ports, &its.destination_ports)
            && self.tcp_flags().all(|mine| {
                let (set, clear) = other.tcp_flags().fold((0, 0), |(set, clear), its| {
                    (set | its.set, clear | its.clear)
                });
                mine.set & !set == 0 && mine.clear & !clear == 0
            })
            && has_icmp_types(family, &mine.icmp_types, &its.icmp_types)
            && has_destinations(family, &mine.destinations, &its.destinations)
            && (mine.fragments == Fragments::Count || its.fragments == Fragments::Ignore)
            && has_known(&mine.standing, &its.standing)
            && (!self.counts_by_question()
                || other.counts_by_question()
                    && self.name_kind() == other.name_kind()
                    && mine.dns.has_all_of(&its.dns))
            && (!self.counts_by_server_name()
                || other.counts_by_server_name()
                    && self.id_format == other.id_format
                    && has_names(&mine.server_names, &its.server_names))
            && (mine.tcp_states.is_empty()
                || !other.tcp_states().is_empty()
                    && (other.tcp_states().iter()).all(|one| mine.tcp_states.contains(one)))
    }

    fn counts_protocols(&self, family: Family, other: &Self) -> bool {
        let mine = self.protocols();
        let its = match other.cost {
            Cost::NewConnections | Cost::Connections | Cost::Handshakes => &[PROTOCOL_TCP],
            Cost::Packets | Cost::Bytes | Cost::NewNames => other.protocols(),
        };
        let is_never_or_mine = |one: &u8| is_never(family, *one) || mine.contains(one);
        mine.is_empty() || (!its.is_empty() && its.iter().all(is_never_or_mine))
    }
}

fn is_of(family: Family, prefix: &IpNet) -> bool {
    matches!(prefix, IpNet::V6(_)) == (family == Family::V6)
}

/// Returns whether no packet of that family has that protocol.
const fn is_never(family: Family, protocol: u8) -> bool {
    match family {
        Family::V4 => protocol == Match::ICMPV6,
        Family::V6 => protocol == Match::ICMP,
    }
}

/// Returns whether `these` contain all ports of `others`. An empty list has all packets.
fn has_ports(these: &[PortRange], others: &[PortRange]) -> bool {
    let has = |port: u16| these.iter().any(|range| range.contains(&port));
    these.is_empty() || (!others.is_empty() && others.iter().cloned().flatten().all(has))
}

/// Returns whether `these` contain all types of `others` in that family. An empty list has all types except
/// neighbour discovery.
fn has_icmp_types(family: Family, these: &IcmpTypes, others: &IcmpTypes) -> bool {
    let protocol = match family {
        Family::V4 => Match::ICMP,
        Family::V6 => Match::ICMPV6,
    };
    let may_be_discovery =
        |number: &u8| family == Family::V6 && PacketKind::NEIGHBOUR_DISCOVERY.contains(number);
    let is_here = |number: &u8| {
        these.names(protocol, *number) || these.is_empty() && !may_be_discovery(number)
    };
    (these.is_empty() || !others.is_empty()) && others.of_protocol(protocol).iter().all(is_here)
}

/// Returns whether `these` contain all addresses of `others` in that family. An empty list has all addresses.
fn has_destinations(family: Family, these: &[IpNet], others: &[IpNet]) -> bool {
    // Adjacent prefixes may cover another together.
    let merged = IpNet::aggregate(&these.to_vec());
    let has = |other: &IpNet| merged.iter().any(|one| one.contains(other));
    let mut of_family = others.iter().filter(|other| is_of(family, other));
    these.is_empty() || (!others.is_empty() && of_family.all(has))
}

/// Returns whether `these` contain all standings of `others` that a known source may have. An empty list has
/// all standings.
fn has_known(these: &[Standing], others: &[Standing]) -> bool {
    let mut known = [Standing::Proven, Standing::Familiar, Standing::Fresh].into_iter();
    let is_among = |standing: &Standing, all: &[Standing]| all.is_empty() || all.contains(standing);
    known.all(|standing| !is_among(&standing, others) || is_among(&standing, these))
}

#[cfg(test)]
mod tests {
    use limiter_common::address::Family;

    use crate::{config, policy::Policy};

    fn policy(one: &str, other: &str) -> Policy {
        let text = format!(
            "limits:\n  One: {{id: total, burst: 2000, count: 9, period: 1s, {one}}}\n  \
             Other: {{id: total, burst: 2000, count: 9, period: 1s, {other}}}\n"
        );
        let config = config::parse(&text, "test");
        config.unwrap_or_else(|errors| panic!("{errors}")).policy
    }

    const DNS: &str = "cost: packets, match: {destination-port: 53}";

    /// Checks whether the first of two limits counts all packets that the second counts.
    #[track_caller]
    fn check(pairs: &[(&str, &str, bool)]) {
        for (one, other, expected) in pairs {
            let limits = policy(one, other).limits;
            let counts_all = limits[0].counts_all(Family::V6, &limits[1]);
            assert_eq!(counts_all, *expected, "{one}; {other}");
        }
    }

    /// A match without types does not count neighbour discovery.
    #[test]
    fn icmp_types_that_count_all_of_another() {
        const PINGS: &str = "cost: packets, match: {icmp-type: echo-request}";
        const ECHOES: &str = "cost: packets, match: {icmp-type: [echo-request, echo-reply]}";
        const DISCOVERY: &str =
            "cost: packets, match: {icmp-type: [echo-request, neighbour-solicitation]}";
        const ICMPV6: &str = "cost: packets, match: {protocol: icmpv6}";
        // A type of ICMP alone, which IPv6 does not have.
        const TIMES: &str = "cost: packets, match: {icmp-type: [echo-reply, timestamp-reply]}";
        check(&[
            (PINGS, PINGS, true),
            (ECHOES, PINGS, true),
            (PINGS, ECHOES, false),
            (ECHOES, TIMES, true),
            ("cost: packets", ECHOES, true),
            (ICMPV6, ECHOES, true),
            (ECHOES, ICMPV6, false),
            (ECHOES, "cost: packets", false),
            ("cost: packets", DISCOVERY, false),
            (ICMPV6, DISCOVERY, false),
            (DISCOVERY, PINGS, true),
            (DNS, PINGS, false),
            (PINGS, DNS, false),
        ]);
    }

    #[test]
    fn costs_and_protocols_that_count_all_of_another() {
        check(&[
            (DNS, DNS, true),
            ("cost: packets", DNS, true),
            (DNS, "cost: packets", false),
            // Either combination of costs: a frame has many bytes.
            ("cost: packets", "cost: bytes", true),
            ("cost: bytes", "cost: packets", false),
            ("cost: packets", "cost: new-connections", true),
            ("cost: new-connections", "cost: packets", false),
            (
                "cost: new-connections",
                "cost: packets, match: {protocol: tcp, tcp-flags: 'syn,!ack'}",
                false,
            ),
            // Protocols.
            (
                "cost: packets, match: {protocol: udp, destination-port: 53}",
                DNS,
                false,
            ),
            (
                "cost: packets, match: {protocol: [tcp, udp]}",
                "cost: packets, match: {protocol: [udp, icmp]}",
                true,
            ),
            (
                "cost: packets, match: {protocol: tcp}",
                "cost: new-connections",
                true,
            ),
            (
                "cost: packets, match: {protocol: udp}",
                "cost: new-connections",
                false,
            ),
        ]);
    }

    #[test]
    fn fields_that_match_all_of_another() {
        check(&[
            // Ports.
            (
                "cost: packets, match: {destination-port: [50-53, 54-60]}",
                "cost: packets, match: {destination-port: 53-54}",
                true,
            ),
            (
                DNS,
                "cost: packets, match: {destination-port: 53-54}",
                false,
            ),
            (DNS, "cost: packets, match: {source-port: 53}", false),
            // Flags.
            (
                "cost: packets, match: {tcp-flags: syn}",
                "cost: packets, match: {tcp-flags: 'syn,!ack'}",
                true,
            ),
            (
                "cost: packets, match: {tcp-flags: 'syn,!ack'}",
                "cost: packets, match: {tcp-flags: syn}",
                false,
            ),
            (
                "cost: packets, match: {tcp-flags: 'syn,!ack'}",
                "cost: new-connections",
                true,
            ),
            // Destinations. A limit for IPv6 ignores destinations in IPv4.
            (
                "cost: packets, match: {destination: ['2001:db8::/33', '2001:db8:8000::/33']}",
                "cost: packets, match: {destination: ['2001:db8::/32', 192.0.2.1]}",
                true,
            ),
            (
                "cost: packets, match: {destination: '2001:db8::/33'}",
                "cost: packets, match: {destination: '2001:db8::/32'}",
                false,
            ),
            (
                "cost: packets, match: {destination: '2001:db8::/32'}",
                "cost: packets",
                false,
            ),
            // Fragments: a forger can send as many as wanted.
            (
                "cost: packets, match: {destination-port: 53, fragments: ignore}",
                DNS,
                false,
            ),
            (
                DNS,
                "cost: packets, match: {destination-port: 53, fragments: ignore}",
                true,
            ),
            // Standings.
            (
                "cost: packets, match: {standing: [proven, familiar, fresh]}",
                "cost: packets",
                true,
            ),
            (
                "cost: packets, match: {standing: proven}",
                "cost: packets",
                false,
            ),
            (
                "cost: packets, match: {standing: proven}",
                "cost: packets, match: {standing: [proven, unknown]}",
                true,
            ),
        ]);
    }

    #[test]
    fn what_counts_ipv6() {
        for (one, expected) in [
            ("cost: packets", true),
            ("cost: packets, match: {protocol: icmp}", false),
            ("cost: packets, match: {protocol: [icmp, udp]}", true),
            ("cost: packets, match: {destination: 192.0.2.1}", false),
            (
                "cost: packets, match: {destination: [192.0.2.1, '2001:db8::1']}",
                true,
            ),
        ] {
            let limits = policy(one, "cost: packets").limits;
            assert_eq!(limits[0].counts_any(Family::V6), expected, "{one}");
        }
    }

    #[test]
    fn what_counts_ipv4() {
        for (one, expected) in [
            ("cost: packets", true),
            ("cost: packets, match: {protocol: icmp}", true),
            ("cost: packets, match: {protocol: icmpv6}", false),
            ("cost: packets, match: {destination: '2001:db8::1'}", false),
        ] {
            let limits = policy(one, "cost: packets").limits;
            assert_eq!(limits[0].counts_any(Family::V4), expected, "{one}");
        }
        let pair = |prefix: &str| {
            let one = format!("cost: packets, match: {{destination: '{prefix}'}}");
            policy(
                &one,
                "cost: packets, match: {destination: [192.0.2.1, '2001:db8::1']}",
            )
            .limits
        };
        for (prefix, expected) in [("192.0.2.0/24", true), ("198.51.100.0/24", false)] {
            let limits = pair(prefix);
            assert_eq!(limits[0].counts_all(Family::V4, &limits[1]), expected);
            assert!(!limits[0].counts_all(Family::V6, &limits[1]));
        }
    }
}
