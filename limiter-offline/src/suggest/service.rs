//! A service of a host: a protocol and, if it has ports, a port.

use std::{fmt, str::FromStr};

use limiter_common::packet::{Facts, Transport};
use limiter_policy::policy::Match;
use serde::{Serialize, Serializer};

/// The target of packets: a protocol and, if it has ports, a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Service {
    /// A number of [`Match::PROTOCOLS`].
    protocol: u8,
    /// `None`: the protocol has none.
    port: Option<u16>,
}

impl Service {
    /// Returns the service over TCP at a port.
    #[must_use]
    pub const fn tcp(port: u16) -> Self {
        Self {
            protocol: Match::TCP,
            port: Some(port),
        }
    }

    /// Returns the service over UDP at a port.
    #[must_use]
    pub const fn udp(port: u16) -> Self {
        Self {
            protocol: Match::UDP,
            port: Some(port),
        }
    }

    /// Returns the target service of a packet; `None`: another protocol, or a later fragment, which has no
    /// ports.
    #[must_use]
    pub fn of(facts: &Facts) -> Option<Self> {
        match (facts.transport, facts.protocol) {
            (Transport::Tcp, _) => Some(Self::tcp(facts.destination_port)),
            (Transport::Ports, Match::UDP) => Some(Self::udp(facts.destination_port)),
            (Transport::Other, protocol @ (Match::ICMP | Match::ICMPV6)) => Some(Self {
                protocol,
                port: None,
            }),
            _ => None,
        }
    }

    /// Whether it is over TCP.
    #[must_use]
    pub const fn is_tcp(self) -> bool {
        self.protocol == Match::TCP
    }

    /// Returns its port; `None`: its protocol has none.
    #[must_use]
    pub const fn port(self) -> Option<u16> {
        self.port
    }

    /// Returns the protocol's name in configuration files.
    fn protocol_name(self) -> &'static str {
        let mut names = Match::PROTOCOLS.into_iter();
        let found = names.find(|(_, number)| *number == self.protocol);
        found.map_or("", |(name, _)| name)
    }

    /// Returns the first part of a limit's name: `Udp53`.
    #[must_use]
    pub fn limit_name(self) -> String {
        let name = self.protocol_name();
        let (first, rest) = name.split_at(1);
        let port = self.port.map(|port| port.to_string()).unwrap_or_default();
        format!("{}{rest}{port}", first.to_ascii_uppercase())
    }

    /// Returns a `match` for its packets, as in a configuration file.
    #[must_use]
    pub fn matching(self) -> String {
        let name = self.protocol_name();
        match self.port {
            Some(port) => format!("{{protocol: {name}, destination-port: {port}}}"),
            None => format!("{{protocol: {name}}}"),
        }
    }
}

/// Formats it in the form that [`FromStr`] parses.
impl fmt::Display for Service {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.port {
            Some(port) => write!(formatter, "{}/{port}", self.protocol_name()),
            None => formatter.write_str(self.protocol_name()),
        }
    }
}

impl Serialize for Service {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// Parses `udp/53`, or `icmp`.
impl FromStr for Service {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        const EXPECTED: &str = "expected a protocol and a port, such as tcp/443 or udp/53; or icmp \
                                or icmpv6";
        let (name, port) = match text.split_once('/') {
            Some((name, port)) => (name, Some(port.parse::<u16>().map_err(|_| EXPECTED)?)),
            None => (text, None),
        };
        Match::PROTOCOLS
            .into_iter()
            .find(|(known, number)| {
                *known == name && Match::PROTOCOLS_WITH_PORTS.contains(number) == port.is_some()
            })
            .map(|(_, protocol)| Self { protocol, port })
            .ok_or_else(|| EXPECTED.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn written_as_they_are_read() {
        for text in ["tcp/443", "udp/53", "udp/0", "icmp", "icmpv6"] {
            let service: Service = text.parse().unwrap();
            assert_eq!(service.to_string(), text);
        }
        for text in ["", "tcp", "icmp/8", "tcp/65536", "tcp/-1", "sctp/9", "53"] {
            assert!(text.parse::<Service>().is_err(), "{text}");
        }
        assert_eq!(Service::udp(53).limit_name(), "Udp53");
        assert_eq!(
            Service::tcp(443).matching(),
            "{protocol: tcp, destination-port: 443}"
        );
        let ping: Service = "icmpv6".parse().unwrap();
        assert_eq!(ping.limit_name(), "Icmpv6");
        assert_eq!(ping.matching(), "{protocol: icmpv6}");
    }
}
