//! Conditions on the type of the ICMP messages that a limit counts.

use std::fmt;

use limiter_common::packet::{PROTOCOL_ICMP, PROTOCOL_ICMPV6};
use serde::{Deserialize, Serialize};

/// Types of ICMP and of ICMPv6. An empty list matches every packet except neighbour discovery.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct IcmpTypes {
    /// The types of ICMP, sorted.
    pub icmp: Vec<u8>,
    /// The types of ICMPv6, sorted.
    pub icmpv6: Vec<u8>,
}

/// A named type, with its number in each protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NamedIcmpType {
    /// Its number in ICMP.
    pub icmp: Option<u8>,
    /// Its number in ICMPv6.
    pub icmpv6: Option<u8>,
}

impl NamedIcmpType {
    /// Returns its number in a protocol.
    #[must_use]
    pub const fn in_protocol(self, protocol: u8) -> Option<u8> {
        match protocol {
            PROTOCOL_ICMP => self.icmp,
            PROTOCOL_ICMPV6 => self.icmpv6,
            _ => None,
        }
    }
}

const fn both(icmp: u8, icmpv6: u8) -> NamedIcmpType {
    NamedIcmpType {
        icmp: Some(icmp),
        icmpv6: Some(icmpv6),
    }
}

const fn of_icmp(number: u8) -> NamedIcmpType {
    NamedIcmpType {
        icmp: Some(number),
        icmpv6: None,
    }
}

const fn of_icmpv6(number: u8) -> NamedIcmpType {
    NamedIcmpType {
        icmp: None,
        icmpv6: Some(number),
    }
}

impl IcmpTypes {
    /// The types that have names in configuration files and output.
    pub const NAMES: [(&'static str, NamedIcmpType); 16] = [
        ("echo-request", both(8, 128)),
        ("echo-reply", both(0, 129)),
        ("destination-unreachable", both(3, 1)),
        ("time-exceeded", both(11, 3)),
        ("parameter-problem", both(12, 4)),
        ("packet-too-big", of_icmpv6(2)),
        ("redirect", both(5, 137)),
        ("router-solicitation", both(10, 133)),
        ("router-advertisement", both(9, 134)),
        ("neighbour-solicitation", of_icmpv6(135)),
        ("neighbour-advertisement", of_icmpv6(136)),
        ("multicast-listener-query", of_icmpv6(130)),
        ("multicast-listener-report", of_icmpv6(131)),
        ("multicast-listener-done", of_icmpv6(132)),
        ("timestamp-request", of_icmp(13)),
        ("timestamp-reply", of_icmp(14)),
    ];

    /// Returns whether it has no types.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.icmp.is_empty() && self.icmpv6.is_empty()
    }

    /// Returns the types in a protocol.
    #[must_use]
    pub fn of_protocol(&self, protocol: u8) -> &[u8] {
        match protocol {
            PROTOCOL_ICMP => &self.icmp,
            PROTOCOL_ICMPV6 => &self.icmpv6,
            _ => &[],
        }
    }

    /// Returns the protocols that have any of the types.
    #[must_use]
    pub const fn protocols(&self) -> &'static [u8] {
        match (self.icmp.is_empty(), self.icmpv6.is_empty()) {
            (true, true) => &[],
            (false, true) => &[PROTOCOL_ICMP],
            (true, false) => &[PROTOCOL_ICMPV6],
            (false, false) => &[PROTOCOL_ICMP, PROTOCOL_ICMPV6],
        }
    }

    /// Returns whether it has a type.
    #[must_use]
    pub fn names(&self, protocol: u8, number: u8) -> bool {
        self.of_protocol(protocol).contains(&number)
    }

    /// Returns whether it matches a message that is not neighbour discovery.
    #[must_use]
    pub fn has(&self, protocol: u8, number: u8) -> bool {
        self.is_empty() || self.names(protocol, number)
    }

    /// Returns the type of that name; `neighbour` and `neighbor` are both valid.
    #[must_use]
    pub fn by_name(name: &str) -> Option<NamedIcmpType> {
        let name = name.replace("neighbor", "neighbour");
        let mut known = Self::NAMES.iter();
        let known = known.find(|(known, _)| *known == name);
        known.map(|(_, named)| *named)
    }
}

/// Formats the types as in a configuration file, each name once: `echo-request,17`.
impl fmt::Display for IcmpTypes {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut words = Vec::new();
        for protocol in [PROTOCOL_ICMP, PROTOCOL_ICMPV6] {
            for number in self.of_protocol(protocol) {
                let mut known = Self::NAMES.iter();
                let named = known.find(|(_, named)| named.in_protocol(protocol) == Some(*number));
                let word = named.map_or_else(|| number.to_string(), |(name, _)| (*name).to_owned());
                if !words.contains(&word) {
                    words.push(word);
                }
            }
        }
        formatter.write_str(&words.join(","))
    }
}
