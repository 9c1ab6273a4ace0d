//! Addresses and prefixes as files spell them.

use std::net::{IpAddr, Ipv6Addr};

use ipnet::IpNet;
use limiter_common::address::Family;

/// An address, and the length that stands after it.
#[derive(Clone, Copy)]
pub struct Written {
    pub(crate) address: IpAddr,
    pub(crate) length: Option<u8>,
}

/// Why a text is neither an address nor a prefix.
#[derive(Debug)]
pub enum Invalid {
    /// It looks like neither.
    Malformed,
    /// What is wrong with it and what would be right.
    Because(String),
}

impl Invalid {
    /// What is wrong and what would be right; `expected` is what belongs there.
    #[must_use]
    pub fn why(self, expected: &str) -> String {
        match self {
            Self::Malformed => format!("expected {expected}"),
            Self::Because(why) => why,
        }
    }
}

impl Written {
    /// What `text` spells.
    pub fn parse(text: &str) -> Result<Self, Invalid> {
        let (address, length) = match text.split_once('/') {
            Some((address, length)) => (address, Some(length)),
            None => (text, None),
        };
        if address.contains('%') {
            return Err(Invalid::Because(
                "must be without a zone ('%…'): an address is limited on every interface"
                    .to_owned(),
            ));
        }
        let address = match address.parse() {
            Ok(address) => address,
            Err(_) if has_leading_zeros(address) => {
                return Err(Invalid::Because(
                    "must be without leading zeros, which some programs read as octal".to_owned(),
                ));
            }
            Err(_) => return Err(Invalid::Malformed),
        };
        let length = match length {
            Some(length) => Some(parse_length(length, address).ok_or(Invalid::Malformed)?),
            None => None,
        };
        match ipv4_meant(address, length) {
            Some(ipv4) => Err(Invalid::Because(format!(
                "which stands for an IPv4 address, did you mean '{ipv4}'?"
            ))),
            None => Ok(Self { address, length }),
        }
    }

    /// The family of the address.
    pub(crate) const fn family(self) -> Family {
        match self.address {
            IpAddr::V4(_) => Family::V4,
            IpAddr::V6(_) => Family::V6,
        }
    }

    /// How many bits the address has.
    pub(crate) const fn bits(self) -> u8 {
        bits(self.address)
    }

    /// The prefix of this length that the address is in; `None`: it has fewer bits.
    pub(crate) fn around(self, length: u8) -> Option<IpNet> {
        Some(IpNet::new(self.address, length).ok()?.trunc())
    }

    /// The prefix itself, which must have no host bits set; an address alone is the prefix of
    /// its full length.
    pub fn prefix(self) -> Result<IpNet, Invalid> {
        let length = self.length.unwrap_or(self.bits());
        let prefix = self.around(length).ok_or(Invalid::Malformed)?;
        if prefix.addr() == self.address {
            Ok(prefix)
        } else {
            Err(Invalid::Because(format!(
                "must have no host bits set, did you mean '{prefix}'?"
            )))
        }
    }
}

const fn bits(address: IpAddr) -> u8 {
    match address {
        IpAddr::V4(_) => 32,
        IpAddr::V6(_) => 128,
    }
}

/// A length in its one spelling.
fn parse_length(text: &str, address: IpAddr) -> Option<u8> {
    let length: u8 = text.parse().ok()?;
    (length <= bits(address) && text == length.to_string()).then_some(length)
}

/// What of IPv4 an IPv6 address or prefix in ::ffff:0:0/96 stands for. A packet from there is
/// malformed, so a limit of it would never apply.
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

/// Whether a text is an IPv4 address but for leading zeros in its numbers.
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
