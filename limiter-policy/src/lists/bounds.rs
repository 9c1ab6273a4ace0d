//! The bounds of a list's feeds. A feed's author decides which addresses are blocked or excluded;
//! the configuration decides how many that may be.

use ipnet::IpNet;
use jiff::{SignedDuration, Timestamp};
use limiter_common::address::Family;
use serde::{Deserialize, Serialize};

use super::coverage::Coverage;
use crate::share::Share;

/// How much of each family the feeds of a list may cover, and by how much one may grow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bounds {
    /// The share of all IPv4 addresses.
    pub ipv4: Share,
    /// The share of the internet's IPv6 addresses, 2000::/3.
    pub ipv6: Share,
    /// The factor by which a feed may grow within a day; `None`: any.
    pub growth: Option<u32>,
}

/// For comparison: 14 % of IPv4 is not routed; the registries hold 2 % of IPv6.
impl Default for Bounds {
    fn default() -> Self {
        Self {
            ipv4: Share::from_millionths(200_000),
            ipv6: Share::from_millionths(1_000),
            growth: Some(2),
        }
    }
}

/// The coverage that a feed's growth is measured from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Baseline {
    /// The coverage.
    pub covers: Coverage,
    /// Since when growth is measured from it.
    pub since: Timestamp,
}

impl Baseline {
    /// How long it holds, so that a feed that always stays just below the factor grows by it only
    /// once a day.
    const HOLDS: SignedDuration = SignedDuration::from_hours(24);

    /// Returns the baseline from now on, for a feed that covers this much.
    pub(super) fn next(self, covers: Coverage, now: Timestamp) -> Self {
        let age = now.duration_since(self.since);
        if age.is_negative() || age >= Self::HOLDS {
            return Self { covers, since: now };
        }
        self
    }
}

/// Any feed may grow to this much: an IPv4 /16, an IPv6 /32.
const SMALL: Coverage = Coverage {
    ipv4_addresses: 1 << 16,
    ipv6_64s: 1 << 32,
};

impl Bounds {
    /// Checks what a feed covers, or all feeds of a list together.
    ///
    /// # Errors
    ///
    /// The family in which it covers too much.
    pub fn check_coverage(&self, covers: Coverage) -> Result<(), Excess> {
        for (family, most) in [(Family::V4, self.ipv4), (Family::V6, self.ipv6)] {
            let share = covers.share(family);
            if share > most {
                return Err(Excess {
                    family,
                    share,
                    most,
                });
            }
        }
        Ok(())
    }

    /// Checks a feed's growth.
    pub(super) fn check_growth(&self, from: Coverage, to: Coverage) -> Result<(), Growth> {
        let Some(factor) = self.growth else {
            return Ok(());
        };
        for family in [Family::V4, Family::V6] {
            let (from, to) = (from.in_family(family), to.in_family(family));
            let most = from.saturating_mul(factor.into());
            if to > most.max(SMALL.in_family(family)) {
                return Err(Growth {
                    family,
                    from,
                    to,
                    factor,
                });
            }
        }
        Ok(())
    }
}

/// Feeds cover more than they may.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Excess {
    /// The family.
    pub family: Family,
    /// The share they cover.
    pub share: Share,
    /// The share they may cover.
    pub most: Share,
}

impl Excess {
    /// Returns what the share is of.
    #[must_use]
    pub const fn space(&self) -> &'static str {
        match self.family {
            Family::V4 => "all IPv4 addresses",
            Family::V6 => "the IPv6 addresses of the internet (2000::/3)",
        }
    }
}

/// A feed has grown by more than it may.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Growth {
    /// The family.
    pub family: Family,
    /// What it covered before: IPv4 addresses, or IPv6 /64s.
    pub from: u64,
    /// What it covers now.
    pub to: u64,
    /// The factor by which it may grow.
    pub factor: u32,
}

/// Returns what feeds cover beyond the list's own prefixes in the configuration.
pub(super) fn beyond_own<'f>(own: &[IpNet], feeds: impl Iterator<Item = &'f [IpNet]>) -> Coverage {
    let mut all = own.to_vec();
    let own = Coverage::of(&IpNet::aggregate(&all));
    for feed in feeds {
        all.extend_from_slice(feed);
    }
    Coverage::of(&IpNet::aggregate(&all)).beyond(own)
}
