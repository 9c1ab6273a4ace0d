//! Source addresses of both families, masked and compared the same way.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The address family, numbered by IP version.
///
/// 64 bits wide, like the words of an [`Address`], so that the address has no padding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u64)]
pub enum Family {
    /// IPv4.
    V4 = 4,
    /// IPv6.
    V6 = 6,
}

impl Family {
    /// The index in arrays of one entry per family: 0 for IPv4, 1 for IPv6.
    #[must_use]
    #[inline(always)]
    pub const fn index(self) -> usize {
        self.number() as usize
    }

    /// [`Self::index`] in 32 bits, for arguments of the kernel program's functions.
    #[must_use]
    #[inline(always)]
    pub const fn number(self) -> u32 {
        // A bit of the version, read without a branch.
        ((self as u64 >> 1) & 1) as u32
    }

    /// The family with this [index](Self::index).
    #[must_use]
    #[inline(always)]
    pub const fn of_index(index: usize) -> Self {
        [Self::V4, Self::V6][index & 1]
    }
}

/// An IPv4 or IPv6 address, left-aligned in 128 bits, in host byte order.
///
/// The family is part of the address: an IPv6 packet from `::ffff:192.0.2.1` must not spend the
/// budget of 192.0.2.1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(C)]
pub struct Address {
    /// The family.
    pub family: Family,
    /// The leading 64 bits; an IPv4 address is in their upper half.
    pub high: u64,
    /// The trailing 64 bits; 0 for IPv4.
    pub low: u64,
}

impl Address {
    /// Makes an IPv4 address from its four bytes in network order.
    #[must_use]
    #[inline(always)]
    pub const fn v4(bytes: [u8; 4]) -> Self {
        Self {
            family: Family::V4,
            high: (u32::from_be_bytes(bytes) as u64) << 32,
            low: 0,
        }
    }

    /// Makes an IPv6 address from the two halves of its sixteen bytes in network order.
    #[must_use]
    #[inline(always)]
    pub const fn v6(high: [u8; 8], low: [u8; 8]) -> Self {
        Self {
            family: Family::V6,
            high: u64::from_be_bytes(high),
            low: u64::from_be_bytes(low),
        }
    }

    /// Whether this is an IPv6 address that maps an IPv4 one (`::ffff:0:0/96`).
    #[must_use]
    #[inline(always)]
    pub const fn is_v4_mapped(&self) -> bool {
        matches!(self.family, Family::V6) && self.high == 0 && self.low >> 32 == 0xffff
    }

    /// Whether this is an IPv4 loopback address (`127.0.0.0/8`).
    #[must_use]
    #[inline(always)]
    pub const fn is_v4_loopback(&self) -> bool {
        matches!(self.family, Family::V4) && self.high >> 56 == 127
    }

    /// The address with all but the first `prefix_length` bits cleared.
    #[must_use]
    #[inline(always)]
    pub const fn masked(self, prefix_length: u8) -> Self {
        let (high, low) = if prefix_length >= 64 {
            (u64::MAX, leading_ones(prefix_length - 64))
        } else {
            (leading_ones(prefix_length), 0)
        };
        Self {
            family: self.family,
            high: self.high & high,
            low: self.low & low,
        }
    }
}

impl From<IpAddr> for Address {
    fn from(address: IpAddr) -> Self {
        match address {
            IpAddr::V4(address) => Self::v4(address.octets()),
            IpAddr::V6(address) => {
                let [high @ .., _, _, _, _, _, _, _, _] = address.octets();
                let [_, _, _, _, _, _, _, _, low @ ..] = address.octets();
                Self::v6(high, low)
            }
        }
    }
}

impl From<Address> for IpAddr {
    fn from(address: Address) -> Self {
        match address.family {
            Family::V4 => {
                let [a, b, c, d, ..] = address.high.to_be_bytes();
                Self::V4(Ipv4Addr::new(a, b, c, d))
            }
            Family::V6 => {
                let bits = u128::from(address.high) << 64 | u128::from(address.low);
                Self::V6(Ipv6Addr::from_bits(bits))
            }
        }
    }
}

/// A word with its first `count` bits set; a `count` above 64 counts as 64.
#[inline(always)]
const fn leading_ones(count: u8) -> u64 {
    if count == 0 {
        0
    } else if count >= 64 {
        u64::MAX
    } else {
        u64::MAX << (64 - count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masks_both_families_alike() {
        let v4 = Address::v4([192, 0, 2, 77]);
        assert_eq!(v4.masked(24), Address::v4([192, 0, 2, 0]));
        assert_eq!(v4.masked(32), v4);
        assert_eq!(v4.masked(0), Address::v4([0; 4]));

        let v6 = Address::v6([0x20, 1, 0xd, 0xb8, 0, 1, 0, 2], [3; 8]);
        assert_eq!(
            v6.masked(48),
            Address::v6([0x20, 1, 0xd, 0xb8, 0, 1, 0, 0], [0; 8])
        );
        assert_eq!(v6.masked(64).low, 0);
        assert_eq!(v6.masked(65).low, 0);
        assert_eq!(v6.masked(72).low, 3 << 56);
        assert_eq!(v6.masked(128), v6);
    }

    #[test]
    fn a_mapped_address_is_not_the_ipv4_address() {
        let mapped = Address::v6([0; 8], [0, 0, 0xff, 0xff, 192, 0, 2, 1]);
        assert_ne!(mapped, Address::v4([192, 0, 2, 1]));
        assert!(mapped.is_v4_mapped());
        let others = [
            Address::v4([0, 0, 0xff, 0xff]),
            Address::v6([0; 8], [0, 0, 0, 0, 192, 0, 2, 1]),
            Address::v6([0; 8], [0, 1, 0xff, 0xff, 192, 0, 2, 1]),
            Address::v6([0, 0, 0, 0, 0, 0, 0, 1], [0, 0, 0xff, 0xff, 192, 0, 2, 1]),
        ];
        assert!(others.iter().all(|address| !address.is_v4_mapped()));
    }
}
