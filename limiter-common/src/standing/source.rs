//! What is one source: an IPv4 address or an IPv6 prefix.

use super::Settings;
use crate::address::{Address, Family};

/// A source as one word, from which it can be read again: of IPv6 the upper half of the address, cut
/// to the prefix; of IPv4 the address below 32 bits that no IPv6 source begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(transparent)]
pub struct SourceId(pub u64);

impl SourceId {
    /// The source of nobody, such as `::`.
    pub const NONE: Self = Self(0);

    /// The upper half of IPv4 sources: multicast in IPv6, so never a source.
    const V4: u64 = 0xffff_ffff << 32;

    /// Returns the source of an address.
    #[must_use]
    #[inline(always)]
    pub const fn new(settings: &Settings, address: &Address) -> Self {
        match address.family {
            Family::V4 => Self(Self::V4 | address.high >> 32),
            Family::V6 => Self(address.high & !u64::MAX.unbounded_shr(settings.ipv6_prefix)),
        }
    }
}
