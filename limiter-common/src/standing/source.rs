//! Sources: IPv4 addresses and IPv6 prefixes.

use super::Settings;
use crate::{
    address::{Address, Family},
    table::HashKey,
};

/// A source as one reversible word. For IPv6, the upper half of the address, cut to the prefix. For IPv4, the address
/// below 32 bits that begin no IPv6 source.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(transparent)]
pub struct SourceId(pub u64);

impl SourceId {
    /// The source of no address that can be a source, such as `::`.
    pub const NONE: Self = Self(0);

    /// The upper half of IPv4 sources: multicast in IPv6, so never a source.
    const V4: u64 = 0xffff_ffff << 32;

    /// The first byte of an IPv6 multicast address.
    const MULTICAST: u64 = 0xff;

    /// The source of an address. IPv6 multicast becomes [`Self::NONE`]: the stack refuses packets from there only after
    /// they are judged, and they could pass for an IPv4 source.
    #[must_use]
    #[inline(always)]
    pub const fn new(settings: &Settings, address: &Address) -> Self {
        match address.family {
            Family::V4 => Self(Self::V4 | address.high >> 32),
            Family::V6 if address.high >> 56 == Self::MULTICAST => Self::NONE,
            Family::V6 => Self(address.high & !u64::MAX.unbounded_shr(settings.ipv6_prefix)),
        }
    }

    /// The source's first address.
    #[must_use]
    #[inline(always)]
    pub const fn address(self) -> Address {
        if self.0 & Self::V4 == Self::V4 {
            Address::v4(((self.0 & 0xffff_ffff) as u32).to_be_bytes())
        } else {
            Address::v6(self.0.to_be_bytes(), [0; 8])
        }
    }
}

/// A source and its hash, which many look-ups share.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct HashedSource {
    /// The source.
    pub id: SourceId,
    /// The hash, by the key of the tables.
    pub hash: u64,
}

impl HashedSource {
    /// No source.
    pub(crate) const NONE: Self = Self {
        id: SourceId::NONE,
        hash: 0,
    };

    /// Hashes a source.
    #[must_use]
    #[inline(always)]
    pub const fn new(hash_key: &HashKey, id: SourceId) -> Self {
        Self {
            id,
            hash: hash_key.word_hash(id.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tells_its_first_address() {
        let settings = Settings {
            ipv6_prefix: 48,
            ..Settings::NONE
        };
        let first = |address: Address| SourceId::new(&settings, &address).address();
        let v4 = Address::v4([192, 0, 2, 77]);
        assert_eq!(first(v4), v4);
        let v6 = |last| Address::v6([0x20, 1, 0xd, 0xb8, 0, 7, 0, last], [last; 8]);
        assert_eq!(first(v6(9)), v6(0));
    }

    #[test]
    fn no_ipv6_source_is_an_ipv4_one() {
        let forged = Address::v6([0xff, 0xff, 0xff, 0xff, 192, 0, 2, 77], [7; 8]);
        for ipv6_prefix in [32, 48, 64] {
            let settings = Settings {
                ipv6_prefix,
                ..Settings::NONE
            };
            assert_eq!(SourceId::new(&settings, &forged), SourceId::NONE);
        }
    }
}
