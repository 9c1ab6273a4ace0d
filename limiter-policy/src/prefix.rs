//! Addresses and prefixes, in the strict spelling of files, and in the looser spelling of programs and
//! people.

use std::net::{IpAddr, Ipv6Addr};

use ipnet::IpNet;
use limiter_common::address::Family;

use crate::text;

/// An address with its prefix length, if written.
#[derive(Clone, Copy)]
pub struct AddressOrPrefix {
    pub(crate) address: IpAddr,
    pub(crate) length: Option<u8>,
}

/// The reason why a text is neither an address nor a prefix.
#[derive(Debug)]
pub enum PrefixError {
    /// It resembles neither.
    Malformed,
    /// It has a zone, such as `%eth0`.
    Zone,
    /// It is an IPv4 address, except for leading zeros in a number.
    LeadingZeros,
    /// It stands for this IPv4 address or prefix.
    Ipv4Mapped(String),
    /// Its length exceeds this address's number of bits.
    TooLong(IpAddr),
    /// It has host bits. This is the prefix without them.
    HostBits(IpNet),
    /// It is an address with its full length; this is the address.
    FullLength(IpAddr),
    /// It covers every address, where only a part makes sense.
    Everything,
    /// It is a single address, where a range is needed. This is a range around it.
    NotARange(IpNet),
}

impl PrefixError {
    /// Describes the error and its correction. `expected` names the kind of value.
    #[must_use]
    pub fn why(self, expected: &str) -> String {
        match self {
            Self::Malformed => format!("expected {expected}"),
            Self::Zone => {
                "must have no zone ('%…'): an address is limited on every interface".to_owned()
            }
            Self::LeadingZeros => {
                "must have no leading zeros, which some programs read as octal".to_owned()
            }
            Self::Ipv4Mapped(ipv4) => {
                format!("which stands for an IPv4 address, did you mean '{ipv4}'?")
            }
            Self::TooLong(address) => {
                let family = match address {
                    IpAddr::V4(_) => Family::V4,
                    IpAddr::V6(_) => Family::V6,
                };
                format!(
                    "the prefix length of an {} address is at most {}",
                    text::family(family),
                    bits(address)
                )
            }
            Self::HostBits(prefix) => {
                format!("must have no host bits set, did you mean '{prefix}'?")
            }
            Self::FullLength(address) => format!(
                "must be an address without '/{}', did you mean '{address}'?",
                bits(address)
            ),
            Self::Everything => {
                "which is every address: set the limit's own rate instead".to_owned()
            }
            Self::NotARange(range) => format!("must be a range, did you mean '{range}'?"),
        }
    }
}

impl AddressOrPrefix {
    /// Parses an address or prefix.
    pub fn parse(text: &str) -> Result<Self, PrefixError> {
        let (address, length) = match text.split_once('/') {
            Some((address, length)) => (address, Some(length)),
            None => (text, None),
        };
        if address.contains('%') {
            return Err(PrefixError::Zone);
        }
        let address = match address.parse() {
            Ok(address) => address,
            Err(_) if has_leading_zeros(address) => {
                return Err(PrefixError::LeadingZeros);
            }
            Err(_) => return Err(PrefixError::Malformed),
        };
        let length = match length {
            Some(length) => Some(parse_length(length, address)?),
            None => None,
        };
        match ipv4_meant(address, length) {
            Some(ipv4) => Err(PrefixError::Ipv4Mapped(ipv4)),
            None => Ok(Self { address, length }),
        }
    }

    pub(crate) const fn family(self) -> Family {
        match self.address {
            IpAddr::V4(_) => Family::V4,
            IpAddr::V6(_) => Family::V6,
        }
    }

    pub(crate) const fn bits(self) -> u8 {
        bits(self.address)
    }

    /// Returns the prefix of this length around the address; `None`: the address has fewer bits.
    pub(crate) fn around(self, length: u8) -> Option<IpNet> {
        Some(IpNet::new(self.address, length).ok()?.trunc())
    }

    /// Returns the prefix, which must have no host bits. An address alone is a prefix of full length.
    pub fn prefix(self) -> Result<IpNet, PrefixError> {
        let length = self.length.unwrap_or(self.bits());
        let prefix = self.around(length).ok_or(PrefixError::Malformed)?;
        if prefix.addr() == self.address {
            Ok(prefix)
        } else {
            Err(PrefixError::HostBits(prefix))
        }
    }
}

/// A prefix as intended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IntendedPrefix {
    /// The prefix; an address has full length.
    pub prefix: IpNet,
    /// Whether a file would need another spelling.
    pub is_corrected: bool,
}

/// Reads an address or a prefix from a program or a person.
///
/// Programs write an IPv4 client of a dual-stack server as IPv4-mapped, and a network by the address of an
/// interface in it; mail servers put an address in brackets; and a link-local one has its interface's name behind it.
/// Refusing them would leave an attacker without a ban. Taking a mapped address as IPv6 would answer about an address
/// that no packet has. Files of the configuration use [`AddressOrPrefix`] instead:
/// their author is there to correct them.
pub fn meant(text: &str) -> Result<IntendedPrefix, PrefixError> {
    let corrected = |prefix| IntendedPrefix {
        prefix,
        is_corrected: true,
    };
    if let Some(bare) = without_decoration(text) {
        return Ok(corrected(meant(bare)?.prefix));
    }
    match AddressOrPrefix::parse(text).and_then(AddressOrPrefix::prefix) {
        Ok(prefix) => Ok(IntendedPrefix {
            prefix,
            is_corrected: false,
        }),
        Err(PrefixError::HostBits(prefix)) => Ok(corrected(prefix)),
        // A mapped prefix shorter than /96 stands for no IPv4 prefix.
        Err(PrefixError::Ipv4Mapped(ipv4)) if ipv4.contains('/') == text.contains('/') => {
            Ok(corrected(meant(&ipv4)?.prefix))
        }
        Err(invalid) => Err(invalid),
    }
}

/// Returns the address in brackets, or before the name of a link-local address's interface.
fn without_decoration(text: &str) -> Option<&str> {
    if let Some(inner) = text.strip_prefix('[') {
        return inner
            .strip_suffix(']')
            .filter(|inner| !inner.starts_with('['));
    }
    let (address, _interface) = text.split_once('%')?;
    let is_link_local = address
        .parse()
        .is_ok_and(|address| Ipv6Addr::is_unicast_link_local(&address));
    is_link_local.then_some(address)
}

const fn bits(address: IpAddr) -> u8 {
    match address {
        IpAddr::V4(_) => 32,
        IpAddr::V6(_) => 128,
    }
}

/// Parses a prefix length in its only valid spelling.
fn parse_length(text: &str, address: IpAddr) -> Result<u8, PrefixError> {
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if !is_number || (text.starts_with('0') && text != "0") {
        return Err(PrefixError::Malformed);
    }
    match text.parse() {
        Ok(length) if length <= bits(address) => Ok(length),
        _ => Err(PrefixError::TooLong(address)),
    }
}

/// Returns the IPv4 address or prefix that an IPv6 one in ::ffff:0:0/96 stands for. Packets from there are
/// malformed, so a limit on it would never apply.
fn ipv4_meant(address: IpAddr, length: Option<u8>) -> Option<String> {
    let IpAddr::V6(address) = address else {
        return None;
    };
    let ipv4 = Ipv6Addr::to_ipv4_mapped(&address)?;
    Some(match length.and_then(|length| length.checked_sub(96)) {
        Some(length) => format!("{ipv4}/{length}"),
        None => ipv4.to_string(),
    })
}

/// Returns whether a text is an IPv4 address, except for leading zeros in its numbers.
fn has_leading_zeros(text: &str) -> bool {
    let numbers: Vec<&str> = text.split('.').collect();
    let is_number =
        |number: &&str| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    numbers.len() == 4
        && numbers.iter().all(is_number)
        && numbers
            .iter()
            .any(|number| number.len() > 1 && number.starts_with('0'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_as_programs_hand_them_over() {
        for (text, prefix, is_corrected) in [
            ("192.0.2.1", "192.0.2.1/32", false),
            ("2001:db8::/48", "2001:db8::/48", false),
            ("0.0.0.0/0", "0.0.0.0/0", false),
            ("::ffff:203.0.113.5", "203.0.113.5/32", true),
            ("::ffff:cb00:7105", "203.0.113.5/32", true),
            ("::ffff:203.0.113.5/128", "203.0.113.5/32", true),
            ("::ffff:203.0.113.5/120", "203.0.113.0/24", true),
            ("::ffff:0:0/96", "0.0.0.0/0", true),
            ("172.20.5.7/16", "172.20.0.0/16", true),
            ("2001:db8:9:9::5/64", "2001:db8:9:9::/64", true),
            ("[2001:db8::1]", "2001:db8::1/128", true),
            ("[192.0.2.1]", "192.0.2.1/32", true),
            ("[::ffff:192.0.2.1]", "192.0.2.1/32", true),
            ("fe80::1%eth0", "fe80::1/128", true),
        ] {
            let expected = IntendedPrefix {
                prefix: prefix.parse().unwrap(),
                is_corrected,
            };
            assert_eq!(meant(text).unwrap(), expected, "{text}");
        }
        for text in [
            "",
            "eth0",
            "::ffff:192.0.2.1/64",
            "::ffff:192.0.2.1/129",
            "192.0.2.1/33",
            "192.0.2.01",
            "2001:db8::1%eth0",
            "[2001:db8::1",
            "[[2001:db8::1]]",
            "[]",
        ] {
            assert!(meant(text).is_err(), "{text}");
        }
    }
}
