//! Counters of dropped packets for each banned prefix, from all origins together.

use core::ops::AddAssign;

use super::BanKey;
use crate::address::Address;

/// The packets that the bans of a prefix have dropped.
///
/// Packets add to each number by itself, on all CPUs at once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Hits {
    /// The number of packets.
    pub packets: u64,
    /// The sum of their frames' lengths, in bytes.
    pub bytes: u64,
}

impl AddAssign for Hits {
    fn add_assign(&mut self, more: Self) {
        self.packets = self.packets.saturating_add(more.packets);
        self.bytes = self.bytes.saturating_add(more.bytes);
    }
}

/// The ban of a packet's source, as the length of the banned prefix that contains it.
///
/// A number instead of a key, so that the kernel's entry takes no memory for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub struct BanMatch(u32);

impl BanMatch {
    /// No ban.
    pub const NOT: Self = Self(0);

    /// The ban of a prefix of that length in bits; 0: [`Self::NOT`].
    #[must_use]
    #[inline(always)]
    pub const fn of_length(prefix_length: u32) -> Self {
        Self(prefix_length)
    }

    /// The prefix's length in bits; 0: there is no ban.
    #[must_use]
    #[inline(always)]
    pub const fn length(self) -> u32 {
        self.0
    }

    /// Returns the key of the prefix that contains the source.
    #[must_use]
    #[inline(always)]
    pub const fn key(self, source: &Address) -> BanKey {
        #[expect(clippy::cast_possible_truncation, reason = "up to 128")]
        BanKey::new(source, self.0 as u8)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hits_are_of_the_prefix_that_is_banned() {
        let source = Address::v4([192, 0, 2, 77]);
        let banned_as = BanMatch::of_length(24);
        let prefix = BanKey::new(&Address::v4([192, 0, 2, 0]), 24);
        assert_eq!(banned_as.key(&source), prefix);
        assert_eq!(banned_as.length(), 24);
        assert_ne!(banned_as, BanMatch::NOT);
    }

    #[test]
    fn hits_add_up() {
        let mut hits = Hits::default();
        for bytes in [60, 1_500, u64::MAX] {
            hits += Hits { packets: 1, bytes };
        }
        assert_eq!((hits.packets, hits.bytes), (3, u64::MAX));
    }
}
