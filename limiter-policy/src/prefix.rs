//! Addresses and prefixes as files spell them.

use std::net::{IpAddr, Ipv6Addr};

use ipnet::IpNet;
use limiter_common::address::Family;

use crate::text;

/// An address with the prefix length written after it, if any.
#[derive(Clone, Copy)]
pub struct Written {
    pub(crate) address: IpAddr,
    pub(crate) length: Option<u8>,
}

/// Why a text is neither an address nor a prefix.
#[derive(Debug)]
pub enum Invalid {
    /// It looks like neither of them.
    Malformed,
    /// It has a zone.
    Zone,
    /// It is an IPv4 address but for zeros that begin a number.
    LeadingZeros,
    /// It stands for this IPv4 address or prefix.
    Ipv4Mapped(String),
    /// Its length is more than this address has bits.
    TooLong(IpAddr),
    /// It has host bits: this prefix is without.
    HostBits(IpNet),
    /// It is an address with its full length; this is the address.
    FullLength(IpAddr),
    /// It is every address, where only some can be meant.
    Everything,
    /// It is an address in place of this range around it.
    NotARange(IpNet),
}

impl Invalid {
    /// Says what is wrong and what would be right; `expected` is what belongs there.
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

impl Written {
    /// Parses an address or prefix.
    pub fn parse(text: &str) -> Result<Self, Invalid> {
        let (address, length) = match text.split_once('/') {
            Some((address, length)) => (address, Some(length)),
            None => (text, None),
        };
        if address.contains('%') {
            return Err(Invalid::Zone);
        }
        let address = match address.parse() {
            Ok(address) => address,
            Err(_) if has_leading_zeros(address) => {
                return Err(Invalid::LeadingZeros);
            }
            Err(_) => return Err(Invalid::Malformed),
        };
        let length = match length {
            Some(length) => Some(parse_length(length, address)?),
            None => None,
        };
        match ipv4_meant(address, length) {
            Some(ipv4) => Err(Invalid::Ipv4Mapped(ipv4)),
            None => Ok(Self { address, length }),
        }
    }

    /// Returns the address's family.
    pub(crate) const fn family(self) -> Family {
        match self.address {
            IpAddr::V4(_) => Family::V4,
            IpAddr::V6(_) => Family::V6,
        }
    }

    /// Returns how many bits the address has.
    pub(crate) const fn bits(self) -> u8 {
        bits(self.address)
    }

    /// Returns the prefix of this length around the address; `None`: the address has fewer bits.
    pub(crate) fn around(self, length: u8) -> Option<IpNet> {
        Some(IpNet::new(self.address, length).ok()?.trunc())
    }

    /// Returns the prefix, which must have no host bits set. An address alone is a prefix of full
    /// length.
    pub fn prefix(self) -> Result<IpNet, Invalid> {
        let length = self.length.unwrap_or(self.bits());
        let prefix = self.around(length).ok_or(Invalid::Malformed)?;
        if prefix.addr() == self.address {
            Ok(prefix)
        } else {
            Err(Invalid::HostBits(prefix))
        }
    }
}

const fn bits(address: IpAddr) -> u8 {
    match address {
        IpAddr::V4(_) => 32,
        IpAddr::V6(_) => 128,
    }
}

/// Parses a prefix length, which has only one valid spelling.
fn parse_length(text: &str, address: IpAddr) -> Result<u8, Invalid> {
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if !is_number || (text.starts_with('0') && text != "0") {
        return Err(Invalid::Malformed);
    }
    match text.parse() {
        Ok(length) if length <= bits(address) => Ok(length),
        _ => Err(Invalid::TooLong(address)),
    }
}

/// Returns the IPv4 address or prefix that an IPv6 one in ::ffff:0:0/96 stands for. Packets from
/// there are malformed, so a limit on it would never apply.
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

/// Returns whether a text is an IPv4 address except for leading zeros in its numbers.
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
