//! A packet's kind, from its transport header: the flags of a TCP segment (RFC 9293), or the type
//! of an ICMP message (RFC 792, RFC 4443).

use core::ops::RangeInclusive;

/// The kind of a segment or message as one number: its flags or type, and its protocol in the bits
/// above.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub struct PacketKind(u16);

impl PacketKind {
    /// The number of packets that are neither, and of packets without a known transport header. It
    /// is also ICMP's type 0, which its protocol tells apart. It is among the numbers of messages,
    /// so that Linux 6.1's verifier need not walk the same code after both.
    pub const OTHER: Self = Self(0);

    /// The number of ICMP's type 0.
    pub const ICMP: u16 = 0;
    /// The number of ICMPv6's type 0, from anywhere.
    pub const ICMPV6: u16 = 1 << 8;
    /// The number of ICMPv6's type 0 from the same link: no router has lowered the hop limit (RFC
    /// 4861).
    pub const ICMPV6_ON_LINK: u16 = 2 << 8;
    /// The number of a TCP segment without flags.
    pub const TCP: u16 = 3 << 8;
    /// The number of kinds.
    pub const COUNT: u16 = 4 << 8;

    /// The types of IPv6's neighbour discovery, if from the same link: router solicitation to
    /// redirect.
    pub const NEIGHBOUR_DISCOVERY: RangeInclusive<u8> = 133..=137;

    /// Returns the kind of a TCP segment with these flags.
    #[must_use]
    #[inline(always)]
    pub const fn segment(flags: u8) -> Self {
        Self(Self::TCP | flags as u16)
    }

    /// Returns the kind of an ICMP or ICMPv6 message, by its protocol number; an IPv4 packet has
    /// the hop limit
    /// 0. There is no branch: the verifier would walk the rest once more behind it.
    #[must_use]
    #[inline(always)]
    pub(super) const fn message(protocol: u8, message_type: u8, hop_limit: u8) -> Self {
        // The bit that 58 has and 1 has not.
        let is_icmpv6 = (protocol >> 5) as u16 & 1;
        let lowered_by = (u8::MAX - hop_limit) as u16;
        let is_on_link = lowered_by.wrapping_sub(1) >> 15;
        Self(((is_icmpv6 + (is_icmpv6 & is_on_link)) << 8) | message_type as u16)
    }

    /// The kind's number, below [`Self::COUNT`].
    #[must_use]
    #[inline(always)]
    pub const fn number(self) -> u16 {
        self.0
    }

    /// The flags of a TCP segment; 0 for any other kind.
    #[must_use]
    #[expect(
        clippy::cast_possible_truncation,
        reason = "its lower bits are the flags"
    )]
    pub const fn tcp_flags(self) -> u8 {
        if self.0 >= Self::TCP { self.0 as u8 } else { 0 }
    }

    /// Whether it is neighbour discovery, without which IPv6 stops working (RFC 4861).
    #[must_use]
    #[inline(always)]
    pub const fn is_neighbour_discovery(self) -> bool {
        let first = Self::ICMPV6_ON_LINK + *Self::NEIGHBOUR_DISCOVERY.start() as u16;
        let last = Self::ICMPV6_ON_LINK + *Self::NEIGHBOUR_DISCOVERY.end() as u16;
        first <= self.0 && self.0 <= last
    }
}
