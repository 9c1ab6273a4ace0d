//! The sources that a prefix contains.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::IpNet;
use limiter_common::{
    address::Address,
    standing::{Settings, SourceId},
};

use crate::standing::prefix_of;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sources {
    first: IpAddr,
    /// The number of bits behind a source's number in its address.
    shift: u32,
    /// The binary logarithm of the number of sources.
    log_count: u32,
    /// The source, if the prefix is only a part of it.
    pub(super) part_of: Option<IpNet>,
}

impl Sources {
    pub(super) fn of(settings: &Settings, prefix: IpNet) -> Self {
        let source = SourceId::new(settings, &Address::from(prefix.addr()));
        // At most 64.
        let ipv6_prefix = u8::try_from(settings.ipv6_prefix).unwrap_or(64);
        let whole = prefix_of(source, ipv6_prefix);
        let length = u32::from(whole.prefix_len());
        let prefix_length = u32::from(prefix.prefix_len());
        Self {
            first: whole.addr(),
            shift: u32::from(prefix.max_prefix_len()) - length,
            log_count: length.saturating_sub(prefix_length),
            part_of: (prefix_length > length).then_some(whole),
        }
    }

    pub(super) fn count(&self) -> u64 {
        // An IPv6 source has at most 64 bits.
        1_u64.checked_shl(self.log_count).unwrap_or(u64::MAX)
    }

    /// Returns an address of each source.
    pub(super) fn addresses(self) -> impl Iterator<Item = IpAddr> {
        (0..self.count()).map(move |number| self.address(number))
    }

    fn address(&self, number: u64) -> IpAddr {
        match self.first {
            IpAddr::V4(first) => {
                // At most 2^32 of them.
                let number = u32::try_from(number).unwrap_or_default();
                Ipv4Addr::from_bits(first.to_bits() | number).into()
            }
            IpAddr::V6(first) => {
                Ipv6Addr::from_bits(first.to_bits() | u128::from(number) << self.shift).into()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(ipv6_prefix: u32, prefix: &str) -> Sources {
        let settings = Settings {
            ipv6_prefix,
            ..Settings::NONE
        };
        Sources::of(&settings, prefix.parse().unwrap())
    }

    #[test]
    fn prefixes_have_sources() {
        let check = |ipv6_prefix, prefix: &str, count, last: &str, part_of: Option<&str>| {
            let sources = of(ipv6_prefix, prefix);
            assert_eq!(sources.count(), count, "{prefix}");
            let part_of = part_of.map(|prefix| prefix.parse().unwrap());
            assert_eq!(sources.part_of, part_of, "{prefix}");
            let address: IpAddr = last.parse().unwrap();
            assert_eq!(sources.addresses().last(), Some(address), "{prefix}");
        };
        check(64, "192.0.2.7/32", 1, "192.0.2.7", None);
        check(64, "192.0.2.0/24", 256, "192.0.2.255", None);
        check(64, "198.18.0.0/16", 65_536, "198.18.255.255", None);
        check(64, "2001:db8::/64", 1, "2001:db8::", None);
        check(64, "2001:db8:1::/48", 65_536, "2001:db8:1:ffff::", None);
        check(48, "2001:db8::/40", 256, "2001:db8:ff::", None);
        let of_64 = Some("2001:db8::/64");
        check(64, "2001:db8::1/128", 1, "2001:db8::", of_64);
        check(64, "2001:db8::/96", 1, "2001:db8::", of_64);
        let of_48 = Some("2001:db8:1::/48");
        check(48, "2001:db8:1:2::/64", 1, "2001:db8:1::", of_48);
    }

    #[test]
    fn everybody_is_more_than_can_be_counted() {
        assert_eq!(of(64, "0.0.0.0/0").count(), 1 << 32);
        assert_eq!(of(64, "::/0").count(), u64::MAX);
        assert_eq!(of(63, "::/0").count(), 1 << 63);
    }
}
