//! Conditions on the DNS question of the packets that a limit counts.

use serde::{Deserialize, Serialize};

use super::{NamePattern, dns_name::has_names};

/// Conditions on the DNS message of a packet. An absent part holds for every question.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DnsMatch {
    /// The names in questions; empty: all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub names: Vec<NamePattern>,
    /// The types in questions; empty: all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub types: Vec<u16>,
    /// The OPCODEs of messages, below 16; empty: all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub opcodes: Vec<u8>,
    /// The required value of the flag RD (recursion desired); `None`: either.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recursion_desired: Option<bool>,
    /// Whether records (such as EDNS's `OPT`) must follow the question, or must not; `None`: either.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub edns: Option<bool>,
}

/// The prefix for a type without a name here, before its number (RFC 3597).
const TYPE: &str = "TYPE";

impl DnsMatch {
    /// The types that have names in configuration files and output.
    pub const TYPES: [(&'static str, u16); 28] = [
        ("A", 1),
        ("NS", 2),
        ("CNAME", 5),
        ("SOA", 6),
        ("NULL", 10),
        ("PTR", 12),
        ("HINFO", 13),
        ("MX", 15),
        ("TXT", 16),
        ("AAAA", 28),
        ("SRV", 33),
        ("NAPTR", 35),
        ("DNAME", 39),
        ("DS", 43),
        ("SSHFP", 44),
        ("RRSIG", 46),
        ("NSEC", 47),
        ("DNSKEY", 48),
        ("NSEC3", 50),
        ("NSEC3PARAM", 51),
        ("TLSA", 52),
        ("SVCB", 64),
        ("HTTPS", 65),
        ("SPF", 99),
        ("IXFR", 251),
        ("AXFR", 252),
        ("ANY", 255),
        ("CAA", 257),
    ];

    /// The OPCODEs that have names in configuration files and output.
    pub const OPCODES: [(&'static str, u8); 6] = [
        ("query", 0),
        ("iquery", 1),
        ("status", 2),
        ("notify", 4),
        ("update", 5),
        ("dso", 6),
    ];

    /// Returns whether every question matches.
    #[must_use]
    pub fn is_everything(&self) -> bool {
        *self == Self::default()
    }

    /// Returns whether the kind and the flags of a message match, as
    /// [`Masks::DNS`](limiter_common::policy::Masks::DNS) numbers them.
    #[must_use]
    pub fn has_kind(&self, number: u8) -> bool {
        let (opcode, recursion_desired, edns) = (number >> 2, number & 2 != 0, number & 1 != 0);
        (self.opcodes.is_empty() || self.opcodes.contains(&opcode))
            && self
                .recursion_desired
                .is_none_or(|it| it == recursion_desired)
            && self.edns.is_none_or(|it| it == edns)
    }

    /// Returns whether it matches every question that another one does.
    #[must_use]
    pub fn has_all_of(&self, other: &Self) -> bool {
        let has_types = self.types.is_empty()
            || !other.types.is_empty() && other.types.iter().all(|one| self.types.contains(one));
        let kinds = 0..64;
        has_names(&self.names, &other.names)
            && has_types
            && kinds
                .filter(|kind| other.has_kind(*kind))
                .all(|kind| self.has_kind(kind))
    }

    /// Returns the type with that name, in any case, or in the form `TYPE257` (RFC 3597).
    #[must_use]
    pub fn type_of(text: &str) -> Option<u16> {
        let mut known = Self::TYPES.iter();
        let known = known.find(|(name, _)| name.eq_ignore_ascii_case(text));
        if let Some((_, number)) = known {
            return Some(*number);
        }
        let text = text.to_ascii_uppercase();
        let number: u16 = text.strip_prefix(TYPE)?.parse().ok()?;
        (text == format!("{TYPE}{number}")).then_some(number)
    }

    /// Returns the name of a type.
    #[must_use]
    pub fn type_name(number: u16) -> String {
        let known = Self::TYPES.iter().find(|(_, known)| *known == number);
        known.map_or_else(|| format!("{TYPE}{number}"), |(name, _)| (*name).to_owned())
    }

    /// Returns the name of an OPCODE.
    #[must_use]
    pub fn opcode_name(number: u8) -> String {
        let known = Self::OPCODES.iter().find(|(_, known)| *known == number);
        known.map_or_else(|| number.to_string(), |(name, _)| (*name).to_owned())
    }
}
