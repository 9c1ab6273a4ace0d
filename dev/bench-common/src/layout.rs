//! The addresses of a flood's sources.

/// How the sources of a flood are spread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub enum Layout {
    /// IPv4, all over 16.0.0.0/4.
    V4 = 1,
    /// IPv6, within one /64: one subscriber's addresses.
    V6Near = 2,
    /// IPv6, each in its own /48, all over 2a00::/8.
    V6Far = 3,
}

/// A source address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Source {
    /// IPv4, in host byte order.
    V4(u32),
    /// IPv6, its two halves in host byte order.
    V6(u64, u64),
}

/// An odd number permutes the residues of a power of two: no two indices share an address, and
/// neighbouring indices have distant addresses.
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;

const V4_PREFIX: u32 = 0x1000_0000;
const V4_REST: u32 = 0x0fff_ffff;
const NEAR: u64 = 0x2001_0db8_0001_0001;
const FAR_PREFIX: u64 = 0x2a00_0000_0000_0000;
const FAR_BITS: u32 = 40;

impl Layout {
    /// Returns the layout with this number.
    #[must_use]
    #[inline(always)]
    pub const fn of_number(number: u64) -> Option<Self> {
        match number {
            1 => Some(Self::V4),
            2 => Some(Self::V6Near),
            3 => Some(Self::V6Far),
            _ => None,
        }
    }

    /// Returns the source with this index; all indices below 2^28 have different sources.
    #[must_use]
    #[inline(always)]
    #[expect(clippy::cast_possible_truncation, reason = "28 bits of it are kept")]
    pub const fn source(self, index: u64) -> Source {
        let spread = index.wrapping_mul(SPREAD);
        match self {
            Self::V4 => Source::V4(V4_PREFIX | (spread as u32 & V4_REST)),
            Self::V6Near => Source::V6(NEAR, spread),
            Self::V6Far => {
                let site = spread & ((1 << FAR_BITS) - 1);
                Source::V6(FAR_PREFIX | site << (56 - FAR_BITS), 1)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn each_index_has_a_source_of_its_own() {
        for layout in [Layout::V4, Layout::V6Near, Layout::V6Far] {
            let sources: HashSet<_> = (0..1 << 16).map(|index| layout.source(index)).collect();
            assert_eq!(sources.len(), 1 << 16, "{layout:?}");
            assert_eq!(Layout::of_number(layout as u64), Some(layout));
        }
    }

    #[test]
    fn far_sources_share_no_site() {
        let sites: HashSet<_> = (0..1 << 16)
            .map(|index| match Layout::V6Far.source(index) {
                Source::V6(high, _) => high >> 16,
                Source::V4(_) => 0,
            })
            .collect();
        assert_eq!(sites.len(), 1 << 16);
        assert!(sites.iter().all(|site| site >> 40 == 0x2a));
    }
}
