//! The packets that a limit counts.

use std::{fmt, ops::RangeInclusive};

use ipnet::IpNet;
use limiter_common::{
    packet::{PROTOCOL_ICMP, PROTOCOL_ICMPV6, TcpState},
    standing::Standing,
};
use serde::{Deserialize, Serialize};

use super::{DnsMatch, IcmpTypes, NamePattern, OverrideId, serial};

/// Ports from the first to the last, inclusive.
pub type PortRange = RangeInclusive<u16>;

/// Conditions on the packets that a limit counts. All parts must match. An absent part matches every packet.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Match {
    /// IP protocol numbers; empty: all.
    pub protocols: Vec<u8>,
    /// Source ports; empty: all, and packets without ports too.
    #[serde(with = "port_ranges")]
    pub source_ports: Vec<PortRange>,
    /// Destination ports; empty: all, and packets without ports too.
    #[serde(with = "port_ranges")]
    pub destination_ports: Vec<PortRange>,
    /// The TCP flags; `None`: all, and packets that are not TCP too.
    pub tcp_flags: Option<TcpFlags>,
    /// The types of ICMP messages; empty: all, and packets that are not ICMP too.
    #[serde(default, skip_serializing_if = "IcmpTypes::is_empty")]
    pub icmp_types: IcmpTypes,
    /// Destination prefixes; empty: all.
    pub destinations: Vec<IpNet>,
    /// The treatment of fragments that lack the matched fields.
    pub fragments: Fragments,
    /// The standings of sources, from the highest; empty: all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub standing: Vec<Standing>,
    /// The states of connections; empty: all, and packets that are not TCP too.
    #[serde(default, rename = "state", skip_serializing_if = "Vec::is_empty")]
    pub tcp_states: Vec<TcpState>,
    /// Conditions on the DNS question.
    #[serde(default, skip_serializing_if = "serial::is_default")]
    pub dns: DnsMatch,
    /// The names that clients of connections ask for; empty: all, and connections without a name too.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub server_names: Vec<NamePattern>,
    /// Whether it matches only packets that no other limit with its id and cost counts.
    #[serde(default, skip_serializing_if = "serial::is_default")]
    pub otherwise: bool,
}

/// TCP flags that must be set or clear. The bits are as in byte 13 of the header (RFC 9293): FIN
/// is 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TcpFlags {
    /// Must be set.
    #[serde(with = "tcp_flags")]
    pub set: u8,
    /// Must be clear.
    #[serde(with = "tcp_flags")]
    pub clear: u8,
}

/// The treatment of a datagram's later fragments. Only the first fragment has ports, flags and a type, and in
/// IPv6 only the first one reveals the protocol, so a match is unknown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Fragments {
    /// Counts them as if they matched.
    #[default]
    Count,
    /// Does not count them.
    Ignore,
}

impl Fragments {
    /// Every value.
    pub const ALL: [Self; 2] = [Self::Count, Self::Ignore];

    /// Returns the name in configuration files and output.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Count => "count",
            Self::Ignore => "ignore",
        }
    }
}

impl TcpFlags {
    /// The bit of SYN.
    pub const SYN: u8 = 1 << 1;
    /// The bit of ACK.
    pub const ACK: u8 = 1 << 4;

    /// The flags' names, from the lowest bit.
    pub const NAMES: [&'static str; 8] = ["fin", "syn", "rst", "psh", "ack", "urg", "ece", "cwr"];

    /// Returns the names of the flags in `bits`.
    pub fn names(bits: u8) -> impl Iterator<Item = &'static str> {
        Self::NAMES
            .into_iter()
            .enumerate()
            .filter(move |(bit, _)| bits >> bit & 1 == 1)
            .map(|(_, name)| name)
    }
}

/// Formats the flags as in a configuration file: `syn,!ack`.
impl fmt::Display for TcpFlags {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut separator = "";
        for (bit, name) in Self::NAMES.iter().enumerate() {
            let not = match (self.set >> bit & 1, self.clear >> bit & 1) {
                (1, _) => "",
                (_, 1) => "!",
                _ => continue,
            };
            write!(formatter, "{separator}{not}{name}")?;
            separator = ",";
        }
        Ok(())
    }
}

impl Match {
    /// The protocol number of ICMP.
    pub const ICMP: u8 = PROTOCOL_ICMP;
    /// The protocol number of TCP.
    pub const TCP: u8 = 6;
    /// The protocol number of UDP.
    pub const UDP: u8 = 17;
    /// The protocol number of ICMP for IPv6.
    pub const ICMPV6: u8 = PROTOCOL_ICMPV6;

    /// The protocols that have names in configuration files and output.
    pub const PROTOCOLS: [(&'static str, u8); 4] = [
        ("tcp", Self::TCP),
        ("udp", Self::UDP),
        ("icmp", Self::ICMP),
        ("icmpv6", Self::ICMPV6),
    ];

    /// The protocols that have ports: TCP, UDP, DCCP, SCTP and UDP-Lite.
    pub const PROTOCOLS_WITH_PORTS: [u8; 5] = [Self::TCP, Self::UDP, 33, 132, 136];

    /// Returns whether it depends on the transport header, which later fragments lack.
    #[must_use]
    pub const fn needs_transport(&self) -> bool {
        self.needs_ports() || self.needs_tcp() || !self.icmp_types.is_empty()
    }

    /// Returns whether it depends on fields that only TCP has.
    #[must_use]
    pub const fn needs_tcp(&self) -> bool {
        self.tcp_flags.is_some() || !self.tcp_states.is_empty()
    }

    /// Returns whether it depends on ports.
    #[must_use]
    pub const fn needs_ports(&self) -> bool {
        !self.source_ports.is_empty() || !self.destination_ports.is_empty()
    }

    /// Returns whether every packet matches.
    #[must_use]
    pub fn is_everything(&self) -> bool {
        *self == Self::default()
    }
}

/// Formats the match briefly, on one line: `udp dport 53`. Empty if every packet matches.
impl fmt::Display for Match {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts = [
            list(&self.protocols, |number| protocol(*number)),
            part("sport", list(&self.source_ports, ports)),
            part("dport", list(&self.destination_ports, ports)),
            part("flags", self.tcp_flags.map(|flags| flags.to_string())),
            part(
                "icmp-type",
                (!self.icmp_types.is_empty()).then(|| self.icmp_types.to_string()),
            ),
            part("to", list(&self.destinations, destination)),
            (self.fragments == Fragments::Ignore).then(|| "no fragments".to_owned()),
            part(
                "standing",
                list(&self.standing, |one| one.name().to_owned()),
            ),
            part("state", list(&self.tcp_states, |one| one.name().to_owned())),
            part("name", list(&self.dns.names, NamePattern::to_string)),
            part(
                "type",
                list(&self.dns.types, |one| DnsMatch::type_name(*one)),
            ),
            part(
                "opcode",
                list(&self.dns.opcodes, |one| DnsMatch::opcode_name(*one)),
            ),
            part("rd", self.dns.recursion_desired.map(yes_or_no)),
            part("edns", self.dns.edns.map(yes_or_no)),
            part("server", list(&self.server_names, NamePattern::to_string)),
            self.otherwise.then(|| "otherwise".to_owned()),
        ];
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        formatter.write_str(&parts.join(" "))
    }
}

/// Formats a part after its name, if present.
fn part(name: &str, value: Option<String>) -> Option<String> {
    value.map(|value| format!("{name} {value}"))
}

/// Joins items with commas; `None` if there are none.
fn list<T>(items: &[T], text: impl Fn(&T) -> String) -> Option<String> {
    let texts: Vec<String> = items.iter().map(text).collect();
    (!texts.is_empty()).then(|| texts.join(","))
}

fn yes_or_no(value: bool) -> String {
    let text = if value { "yes" } else { "no" };
    text.to_owned()
}

fn protocol(number: u8) -> String {
    Match::PROTOCOLS
        .iter()
        .find(|(_, named)| *named == number)
        .map_or_else(|| number.to_string(), |(name, _)| (*name).to_owned())
}

fn destination(prefix: &IpNet) -> String {
    OverrideId::Prefix(*prefix).to_string()
}

fn ports(range: &PortRange) -> String {
    if range.start() == range.end() {
        range.start().to_string()
    } else {
        format!("{}-{}", range.start(), range.end())
    }
}

/// Port ranges, as objects with the first and the last port.
mod port_ranges {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use super::PortRange;

    #[derive(Serialize, Deserialize)]
    struct Ports {
        first: u16,
        last: u16,
    }

    pub(super) fn serialize<S: Serializer>(
        ranges: &[PortRange],
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(ranges.iter().map(|range| Ports {
            first: *range.start(),
            last: *range.end(),
        }))
    }

    pub(super) fn deserialize<'d, D: Deserializer<'d>>(
        deserializer: D,
    ) -> Result<Vec<PortRange>, D::Error> {
        let ranges = Vec::<Ports>::deserialize(deserializer)?;
        Ok(ranges
            .into_iter()
            .map(|ports| ports.first..=ports.last)
            .collect())
    }
}

/// TCP flags, as a list of names.
mod tcp_flags {
    use serde::{Deserialize, Deserializer, Serializer, de::Error as _};

    use super::TcpFlags;

    #[expect(
        clippy::trivially_copy_pass_by_ref,
        reason = "serde passes every field by reference"
    )]
    pub(super) fn serialize<S: Serializer>(bits: &u8, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(TcpFlags::names(*bits))
    }

    pub(super) fn deserialize<'d, D: Deserializer<'d>>(deserializer: D) -> Result<u8, D::Error> {
        let names = Vec::<String>::deserialize(deserializer)?;
        names.iter().try_fold(0, |bits, name| {
            let mut known = TcpFlags::NAMES.iter();
            let bit = known.position(|known| known == name);
            let bit =
                bit.ok_or_else(|| D::Error::custom(format_args!("unknown TCP flag '{name}'")))?;
            Ok(bits | 1 << bit)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_match_in_one_line() {
        let everything = Match::default();
        assert_eq!(everything.to_string(), "");
        let one = Match {
            protocols: vec![Match::UDP],
            destination_ports: vec![53..=53],
            ..Match::default()
        };
        assert_eq!(one.to_string(), "udp dport 53");
        let all = Match {
            protocols: vec![Match::TCP, 132],
            source_ports: vec![1..=1, 1024..=65535],
            destination_ports: vec![443..=443],
            tcp_flags: Some(TcpFlags {
                set: TcpFlags::SYN,
                clear: TcpFlags::ACK,
            }),
            icmp_types: IcmpTypes {
                icmp: vec![5, 8, 17],
                icmpv6: vec![17, 128, 135, 137],
            },
            destinations: vec![
                IpNet::from(std::net::IpAddr::from([192, 0, 2, 1])),
                IpNet::from(std::net::IpAddr::from([0; 16])),
            ],
            fragments: Fragments::Ignore,
            standing: vec![Standing::Retried, Standing::Unknown],
            tcp_states: vec![TcpState::New, TcpState::None],
            dns: DnsMatch {
                names: vec!["*.example".parse().unwrap()],
                types: vec![255, 300],
                opcodes: vec![4, 15],
                recursion_desired: Some(true),
                edns: Some(false),
            },
            server_names: vec!["www.example".parse().unwrap()],
            otherwise: true,
        };
        assert_eq!(
            all.to_string(),
            "tcp,132 sport 1,1024-65535 dport 443 flags syn,!ack icmp-type \
             redirect,echo-request,17,neighbour-solicitation to 192.0.2.1,:: no fragments standing retried,unknown state new,none name *.example type ANY,TYPE300 opcode \
             notify,15 rd yes edns no server www.example otherwise"
        );
    }
}
