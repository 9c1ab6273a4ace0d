//! How many of a family's addresses prefixes cover.

use ipnet::{IpNet, Ipv6Net};
use limiter_common::address::Family;
use serde::{Deserialize, Serialize};

use crate::fraction::Fraction;

/// The internet's IPv6 addresses, 2000::/3. Other addresses are not routed across the internet, and counting
/// them would make any part of it look small.
const INTERNET: Ipv6Net =
    Ipv6Net::new_assert(std::net::Ipv6Addr::new(0x2000, 0, 0, 0, 0, 0, 0, 0), 3);

/// How many addresses prefixes cover.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Coverage {
    /// IPv4 addresses.
    pub ipv4_addresses: u64,
    /// IPv6 addresses of 2000::/3 in /64s, rounded up.
    pub ipv6_64s: u64,
}

impl Coverage {
    /// Returns the coverage of prefixes that do not overlap.
    #[must_use]
    pub fn of(prefixes: &[IpNet]) -> Self {
        let mut ipv4 = 0;
        let mut ipv6 = 0;
        for prefix in prefixes {
            match prefix {
                IpNet::V4(prefix) => ipv4 += 1_u64 << (32 - prefix.prefix_len()),
                IpNet::V6(prefix) if prefix.contains(&INTERNET) => ipv6 = size(INTERNET),
                IpNet::V6(prefix) if INTERNET.contains(prefix) => ipv6 += size(*prefix),
                IpNet::V6(_) => {}
            }
        }
        Self {
            ipv4_addresses: ipv4,
            ipv6_64s: u64::try_from(ipv6.div_ceil(1 << 64)).unwrap_or(u64::MAX),
        }
    }

    /// Returns the coverage in one family, in the family's unit.
    #[must_use]
    pub const fn in_family(self, family: Family) -> u64 {
        match family {
            Family::V4 => self.ipv4_addresses,
            Family::V6 => self.ipv6_64s,
        }
    }

    /// Returns the fraction of the family's addresses, rounded up.
    #[must_use]
    pub fn fraction(self, family: Family) -> Fraction {
        let whole: u128 = match family {
            Family::V4 => 1 << 32,
            Family::V6 => 1 << (128 - 3 - 64),
        };
        let millionths = (u128::from(self.in_family(family))
            * u128::from(Fraction::WHOLE.millionths()))
        .div_ceil(whole);
        Fraction::from_millionths(u32::try_from(millionths).unwrap_or(u32::MAX))
    }

    /// Returns the coverage beyond another's.
    #[must_use]
    pub const fn beyond(self, other: Self) -> Self {
        Self {
            ipv4_addresses: self.ipv4_addresses.saturating_sub(other.ipv4_addresses),
            ipv6_64s: self.ipv6_64s.saturating_sub(other.ipv6_64s),
        }
    }
}

const fn size(prefix: Ipv6Net) -> u128 {
    // The prefix is 2000::/3 or longer.
    1 << (128 - prefix.prefix_len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn coverage(prefixes: &[&str]) -> Coverage {
        let prefixes = prefixes.iter().map(|prefix| prefix.parse().unwrap());
        Coverage::of(&prefixes.collect::<Vec<_>>())
    }

    #[test]
    fn what_prefixes_have() {
        let check = |prefixes: &[&str], ipv4_addresses, ipv6_64s| {
            let expected = Coverage {
                ipv4_addresses,
                ipv6_64s,
            };
            assert_eq!(coverage(prefixes), expected, "{prefixes:?}");
        };
        check(&[], 0, 0);
        check(&["0.0.0.0/0", "::/0"], 1 << 32, 1 << 61);
        check(&["192.0.2.1/32", "198.51.100.0/24"], 257, 0);
        check(&["2001:db8::1/128"], 0, 1);
        check(&["2001:db8::1/128", "2001:db8::8/125"], 0, 1);
        check(&["2001:db8::/63", "2001:db8:1::/128"], 0, 3);
        // Outside the internet, and around it.
        check(&["fe80::/10", "::/8", "4000::/2"], 0, 0);
        check(&["::/2"], 0, 1 << 61);
    }

    #[test]
    fn fractions_are_exact() {
        let fraction = |prefixes: &[&str], family| coverage(prefixes).fraction(family).to_string();
        assert_eq!(fraction(&["0.0.0.0/0"], Family::V4), "100%");
        assert_eq!(fraction(&["0.0.0.0/1"], Family::V4), "50%");
        assert_eq!(fraction(&["192.0.2.1/32"], Family::V4), "0.0001%");
        assert_eq!(
            fraction(&["224.0.0.0/3", "10.0.0.0/8"], Family::V4),
            "12.8907%"
        );
        assert_eq!(fraction(&["2000::/3"], Family::V6), "100%");
        assert_eq!(fraction(&["2a00::/12"], Family::V6), "0.1954%");
        assert_eq!(fraction(&["192.0.2.1/32"], Family::V6), "0%");
    }
}
