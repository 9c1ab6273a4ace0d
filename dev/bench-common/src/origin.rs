//! The addresses in the measurement of the service: clients', a botnet's, and forged ones.

use crate::layout::Source;

/// The bots.
pub const BOTS: u32 = 10_000;

/// The known clients.
pub const KNOWN: u32 = 100;

/// How many known clients, the first ones, have addresses that a forger knows.
pub const VICTIMS: u32 = 10;

/// Senders with their own addresses, in networks that random forged addresses leave out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Group {
    /// Clients that came before the flood.
    Known = 0,
    /// Clients that come in the flood.
    New = 1,
    /// Hosts that complete handshakes, and then flood.
    Bots = 2,
}

/// 100.64.0.0/10.
const V4_NETWORK: u32 = 0x6440_0000;
const V4_FIRST_OCTET: u64 = 100;

/// 2001:db8::/32.
const V6_NETWORK: u64 = 0x2001_0db8_0000_0000;

/// 198.18.0.0/15 (RFC 2544): the server and the clients' router.
const V4_ROUTER: u32 = 0xc612_0000;

/// The first byte of IPv6 addresses of a site or a link, and of groups.
const V6_SITE: u32 = 0xfc;

const MEMBER_BITS: u32 = 20;

/// Returns whether an address is one of the clients' or their router's, and not a forged one, by its
/// first four bytes in host byte order.
#[must_use]
#[inline(always)]
pub const fn is_near(start: u32, is_v6: bool) -> bool {
    if is_v6 {
        start as u64 == V6_NETWORK >> 32 || start >> 24 >= V6_SITE
    } else {
        start >> 22 == V4_NETWORK >> 22 || start >> 17 == V4_ROUTER >> 17
    }
}

impl Group {
    /// Returns a member's IPv4 address, in host byte order; all below 2^20 have different ones.
    #[must_use]
    #[inline(always)]
    pub const fn v4(self, member: u32) -> u32 {
        V4_NETWORK | (self as u32) << MEMBER_BITS | spread(member)
    }

    /// Returns the upper half of a member's IPv6 addresses, in host byte order: its /64.
    #[must_use]
    #[inline(always)]
    pub const fn v6(self, member: u32) -> u64 {
        V6_NETWORK | (self as u64) << (MEMBER_BITS + 8) | (spread(member) as u64) << 8
    }
}

/// Puts neighbours into different ranges. An odd number permutes the residues of a power of two.
#[inline(always)]
const fn spread(member: u32) -> u32 {
    member.wrapping_add(1).wrapping_mul(0x9e37_79b1) & ((1 << MEMBER_BITS) - 1)
}

/// Where a flood's packets say that they come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub enum Origin {
    /// All of IPv4 from which packets can come, but the clients' network.
    AnyV4 = 1,
    /// All of one IPv6 /32.
    OneV6Prefix = 2,
    /// The bots' own IPv4 addresses.
    Bots = 3,
    /// The IPv4 addresses of known clients that the forger knows.
    KnownV4 = 4,
    /// All of their /64s.
    KnownV6 = 5,
}

impl Origin {
    /// Returns the origin with that number.
    #[must_use]
    #[inline(always)]
    pub const fn of_number(number: u64) -> Option<Self> {
        match number {
            1 => Some(Self::AnyV4),
            2 => Some(Self::OneV6Prefix),
            3 => Some(Self::Bots),
            4 => Some(Self::KnownV4),
            5 => Some(Self::KnownV6),
            _ => None,
        }
    }

    /// Returns whether it forges the addresses of this member, who is no attacker.
    #[must_use]
    pub const fn forges(self, group: Group, member: u32) -> bool {
        matches!(self, Self::KnownV4 | Self::KnownV6)
            && matches!(group, Group::Known)
            && member < VICTIMS
    }

    /// Returns whether its addresses are IPv6.
    #[must_use]
    pub const fn is_v6(self) -> bool {
        matches!(self, Self::OneV6Prefix | Self::KnownV6)
    }

    /// Returns a source for a random number.
    #[must_use]
    #[inline(always)]
    pub const fn source(self, random: u64) -> Source {
        match self {
            Self::AnyV4 => Source::V4(any_v4(random)),
            Self::OneV6Prefix => Source::V6(0x2a0e_97c0_0000_0000 | random >> 32, random << 32 | 1),
            Self::Bots => Source::V4(Group::Bots.v4(one_of(BOTS, random))),
            Self::KnownV4 => Source::V4(Group::Known.v4(one_of(VICTIMS, random))),
            Self::KnownV6 => Source::V6(Group::Known.v6(one_of(VICTIMS, random)), random),
        }
    }
}

/// Returns a unicast address outside of 0.0.0.0/8, 127.0.0.0/8 and the clients' 100.0.0.0/8.
#[inline(always)]
#[expect(clippy::cast_possible_truncation, reason = "a word of the number")]
const fn any_v4(random: u64) -> u32 {
    const OCTETS: u64 = 221;
    let mut octet = 1 + (((random >> 56) * OCTETS) >> 8);
    if octet >= V4_FIRST_OCTET {
        octet += 1;
    }
    if octet >= 127 {
        octet += 1;
    }
    (octet << 24) as u32 | random as u32 & 0x00ff_ffff
}

/// Returns a number below `count`, by the upper half of a random one.
#[inline(always)]
const fn one_of(count: u32, random: u64) -> u32 {
    (((random >> 32) * count as u64) >> 32) as u32
}

/// Returns the random number with that index (SplitMix64).
#[must_use]
#[inline(always)]
pub const fn random(index: u64) -> u64 {
    let mixed = index.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ mixed >> 31
}

#[cfg(test)]
mod tests {
    use std::{
        collections::HashSet,
        net::{Ipv4Addr, Ipv6Addr},
    };

    use super::*;

    #[test]
    fn nobody_shares_an_address() {
        let groups = [Group::Known, Group::New, Group::Bots];
        let members = || {
            groups
                .into_iter()
                .flat_map(|group| (0..BOTS).map(move |member| (group, member)))
        };
        let v4: HashSet<_> = members().map(|(group, member)| group.v4(member)).collect();
        let v6: HashSet<_> = members().map(|(group, member)| group.v6(member)).collect();
        assert_eq!((v4.len(), v6.len()), (30_000, 30_000));
        assert!(v4.iter().all(|address| is_near(*address, false)));
        assert!(v6.iter().all(|half| is_near((half >> 32) as u32, true)));
        assert!(is_near(0xc612_0002, false) && is_near(0xfd88_0000, true));
        assert!(!is_near(0x0808_0808, false) && !is_near(0x2001_0db9, true));
        assert!(v4.iter().all(|address| address >> 22 == V4_NETWORK >> 22));
        assert!(v6.iter().all(|half| half >> 32 == V6_NETWORK >> 32));
        // As real clients are: nearly each in a /24 of its own.
        let ranges: HashSet<_> = (0..KNOWN)
            .map(|member| Group::Known.v4(member) >> 8)
            .collect();
        assert!(ranges.len() > 90, "{}", ranges.len());
    }

    #[test]
    fn any_is_all_from_which_packets_come() {
        let mut octets = HashSet::new();
        for index in 0..100_000 {
            let Source::V4(address) = Origin::AnyV4.source(random(index)) else {
                panic!("not IPv4");
            };
            let address = Ipv4Addr::from(address);
            assert!(
                !address.is_loopback() && !address.is_multicast(),
                "{address}"
            );
            octets.insert(address.octets()[0]);
        }
        assert_eq!(octets.len(), 221);
        assert!(octets.contains(&1) && octets.contains(&223));
        assert!(!octets.contains(&0) && !octets.contains(&100));
    }

    #[test]
    fn others_stay_in_their_groups() {
        let drawn = |origin: Origin| -> HashSet<_> {
            (0..200_000)
                .map(|index| origin.source(random(index)))
                .collect()
        };
        let bots: HashSet<_> = (0..BOTS)
            .map(|bot| Source::V4(Group::Bots.v4(bot)))
            .collect();
        assert_eq!(drawn(Origin::Bots), bots);
        let victims =
            |origin: Origin| (0..KNOWN).filter(move |member| origin.forges(Group::Known, *member));
        let forged: HashSet<_> = victims(Origin::KnownV4)
            .map(|one| Source::V4(Group::Known.v4(one)))
            .collect();
        assert_eq!(drawn(Origin::KnownV4), forged);
        let halves: HashSet<_> = victims(Origin::KnownV6)
            .map(|one| Group::Known.v6(one))
            .collect();
        let drawn_halves: HashSet<_> = drawn(Origin::KnownV6)
            .into_iter()
            .map(|source| match source {
                Source::V6(half, _) => half,
                Source::V4(address) => panic!("{address}"),
            })
            .collect();
        assert_eq!(drawn_halves, halves);
        assert_eq!(victims(Origin::AnyV4).count(), 0);
        for source in drawn(Origin::OneV6Prefix) {
            let Source::V6(high, low) = source else {
                panic!("not IPv6");
            };
            let address = Ipv6Addr::from(u128::from(high) << 64 | u128::from(low));
            assert_eq!(address.segments()[..2], [0x2a0e, 0x97c0]);
        }
    }

    #[test]
    fn each_origin_has_its_number() {
        for number in 1..=5 {
            assert_eq!(
                Origin::of_number(number).map(|origin| origin as u64),
                Some(number)
            );
        }
        assert_eq!(Origin::of_number(0), None);
    }
}
