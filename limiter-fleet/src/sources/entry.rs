//! A node's entry about a source, and the checks of entries from other nodes.

use std::net::{Ipv4Addr, Ipv6Addr};

use serde::{Deserialize, Serialize};

use crate::bans::MOST_AHEAD_MS;

/// The number of slots: the parts into which a node divides its sources.
pub const SLOTS: usize = 256;

/// The index of a slot.
pub type Slot = u8;

/// The latest end of an entry, in seconds from now: a year and a day.
const LONGEST_S: u64 = 366 * 24 * 3_600;

/// A source: an IPv4 address, or the upper half of the addresses of an IPv6 prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Source {
    /// An address.
    V4([u8; 4]),
    /// A prefix, with zeros behind it.
    V6([u8; 8]),
}

/// A node's entry about a source.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SourceEntry {
    /// The source.
    pub source: Source,
    /// Since when the source is proven, in seconds since 1970; 0: for longer than matters.
    pub since_s: u64,
    /// Until when the entry holds, in seconds since 1970; 0: it is taken back.
    pub until_s: u64,
    /// Whether the source was proven during a shortage, and has not come long after it.
    pub is_fresh: bool,
}

/// Why an authenticated entry is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WrongEntry {
    /// No packet from another host has such a source.
    Source,
    /// The sending node has another IPv6 prefix length.
    Prefix,
    /// It holds for too long.
    End,
    /// It is from the future.
    Ahead,
}

impl Source {
    /// Returns the slot of the source.
    #[must_use]
    pub fn slot(self) -> Slot {
        let bytes: &[u8] = match &self {
            Self::V4(bytes) => bytes,
            Self::V6(bytes) => bytes,
        };
        // FNV-1a. Its upper bits are the best mixed.
        let hash = bytes.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
        });
        (hash >> 40).to_le_bytes()[0]
    }

    /// Checks whether another host may meet the source. `ipv6_prefix` and `own_prefix` are the numbers of
    /// leading bits that identify a source there and here.
    ///
    /// # Errors
    ///
    /// It may not.
    pub fn check(self, ipv6_prefix: u8, own_prefix: u8) -> Result<(), WrongEntry> {
        let is_right = match self {
            Self::V4(bytes) => {
                let address = Ipv4Addr::from(bytes);
                bytes[0] != 0
                    && bytes[0] < 240
                    && !address.is_loopback()
                    && !address.is_link_local()
                    && !address.is_multicast()
            }
            Self::V6(half) => {
                if ipv6_prefix != own_prefix {
                    return Err(WrongEntry::Prefix);
                }
                let upper = u64::from_be_bytes(half);
                let behind = u64::MAX.unbounded_shr(ipv6_prefix.into());
                let address = Ipv6Addr::from_bits(u128::from(upper) << 64);
                upper != 0
                    && upper & behind == 0
                    && !address.is_multicast()
                    && !address.is_unicast_link_local()
            }
        };
        if is_right {
            Ok(())
        } else {
            Err(WrongEntry::Source)
        }
    }
}

impl SourceEntry {
    /// Checks an entry from another node, at a time in milliseconds since 1970.
    ///
    /// # Errors
    ///
    /// No honest node would send it.
    pub fn check(&self, ipv6_prefix: u8, own_prefix: u8, now_ms: u64) -> Result<(), WrongEntry> {
        self.source.check(ipv6_prefix, own_prefix)?;
        let latest_s = now_ms.saturating_add(MOST_AHEAD_MS) / 1_000;
        if self.since_s > latest_s {
            return Err(WrongEntry::Ahead);
        }
        if self.until_s > latest_s + LONGEST_S {
            return Err(WrongEntry::End);
        }
        Ok(())
    }

    /// Returns whether it holds at a time in seconds since 1970.
    #[must_use]
    pub const fn holds(&self, now_s: u64) -> bool {
        now_s < self.until_s
    }

    /// Limits the end to the latest one that other nodes accept, at a time in seconds since 1970.
    #[must_use]
    pub fn bounded(self, now_s: u64) -> Self {
        Self {
            until_s: self.until_s.min(now_s + LONGEST_S),
            ..self
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW_S: u64 = 1_700_000_000;

    fn v6(text: &str) -> Source {
        let address: Ipv6Addr = text.parse().unwrap();
        let mut half = [0; 8];
        half.copy_from_slice(&address.octets()[..8]);
        Source::V6(half)
    }

    #[test]
    fn sources_that_come_from_elsewhere() {
        let v4 = |text: &str| Source::V4(text.parse::<Ipv4Addr>().unwrap().octets());
        for good in ["192.0.2.7", "10.0.0.1", "223.255.255.255", "1.0.0.0"] {
            assert_eq!(v4(good).check(64, 56), Ok(()), "{good}");
        }
        for wrong in [
            "0.0.0.0",
            "0.1.2.3",
            "127.0.0.1",
            "169.254.1.1",
            "224.0.0.1",
            "255.255.255.255",
            "240.0.0.1",
        ] {
            assert_eq!(v4(wrong).check(64, 64), Err(WrongEntry::Source), "{wrong}");
        }
        assert_eq!(v6("2001:db8:0:7::").check(64, 64), Ok(()));
        assert_eq!(v6("2001:db8:0:7::").check(64, 56), Err(WrongEntry::Prefix));
        assert_eq!(v6("2001:db8:0:7::").check(56, 64), Err(WrongEntry::Prefix));
        assert_eq!(v6("2001:db8:0:700::").check(56, 56), Ok(()));
        for wrong in [
            "::",
            "2001:db8:0:7::",
            "ff02::",
            "fe80::",
            "ffff:ffff:c000:200::",
        ] {
            assert_eq!(v6(wrong).check(56, 56), Err(WrongEntry::Source), "{wrong}");
        }
    }

    #[test]
    fn times_that_a_node_sends() {
        let entry = SourceEntry {
            source: Source::V4([192, 0, 2, 7]),
            since_s: NOW_S + 60,
            until_s: NOW_S + LONGEST_S,
            is_fresh: false,
        };
        let check = |entry: SourceEntry| entry.check(64, 64, NOW_S * 1_000);
        assert_eq!(check(entry), Ok(()));
        assert_eq!(
            check(SourceEntry {
                since_s: NOW_S + 61,
                ..entry
            }),
            Err(WrongEntry::Ahead)
        );
        let longer = SourceEntry {
            until_s: u64::MAX,
            ..entry
        };
        assert_eq!(check(longer), Err(WrongEntry::End));
        assert_eq!(check(longer.bounded(NOW_S)), Ok(()));
        assert!(entry.holds(NOW_S) && !entry.holds(NOW_S + LONGEST_S));
    }

    #[test]
    fn slots_are_about_as_full() {
        let mut counts = [0_u32; SLOTS];
        for number in 0..25_600_u32 {
            counts[usize::from(Source::V4((0xc612_0000 + number).to_be_bytes()).slot())] += 1;
        }
        let (least, most) = (counts.iter().min(), counts.iter().max());
        assert!(least > Some(&50) && most < Some(&200), "{least:?} {most:?}");
    }
}
