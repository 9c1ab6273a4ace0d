//! What the feeds of a list may come to. Whoever writes a feed says who is blocked or excluded;
//! how many that may be is for the configuration to say.

use ipnet::IpNet;
use jiff::{SignedDuration, Timestamp};
use limiter_common::address::Family;
use serde::{Deserialize, Serialize};

use super::coverage::{Coverage, Share};

/// How much of each family the feeds of a list may cover, and by how much one may grow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bounds {
    /// Of all IPv4 addresses.
    pub ipv4: Share,
    /// Of the IPv6 addresses of the internet, 2000::/3.
    pub ipv6: Share,
    /// By what a feed may multiply within a day; `None`: by anything.
    pub growth: Option<u32>,
}

/// What is not routed is 14 % of IPv4; all that the registries have of IPv6 is 2 %.
impl Default for Bounds {
    fn default() -> Self {
        Self {
            ipv4: Share::from_millionths(200_000),
            ipv6: Share::from_millionths(1_000),
            growth: Some(2),
        }
    }
}

/// What a feed covered, from which it may grow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Baseline {
    /// What it covered.
    pub covers: Coverage,
    /// Since when that is what it may grow from.
    pub since: Timestamp,
}

impl Baseline {
    /// How long it holds: who always stays just below the factor gets no further than once a day.
    const HOLDS: SignedDuration = SignedDuration::from_hours(24);

    /// What a feed may grow from now on that covers so much.
    pub(super) fn next(self, covers: Coverage, now: Timestamp) -> Self {
        let age = now.duration_since(self.since);
        if age.is_negative() || age >= Self::HOLDS {
            return Self { covers, since: now };
        }
        self
    }
}

/// Whatever a feed covered before, it may cover so much: a /16, and a /32.
const SMALL: Coverage = Coverage {
    ipv4_addresses: 1 << 16,
    ipv6_64s: 1 << 32,
};

impl Bounds {
    /// Checks what a feed covers, or all of a list together.
    ///
    /// # Errors
    ///
    /// Where it is more than it may be.
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

    /// Checks what a feed has grown to.
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

/// How feeds cover more than they may.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Excess {
    /// Of which family.
    pub family: Family,
    /// How much they cover.
    pub share: Share,
    /// How much they may.
    pub most: Share,
}

impl Excess {
    /// Of what it is a share.
    #[must_use]
    pub const fn space(&self) -> &'static str {
        match self.family {
            Family::V4 => "all IPv4 addresses",
            Family::V6 => "the IPv6 addresses of the internet (2000::/3)",
        }
    }
}

/// How a feed has grown by more than it may.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Growth {
    /// In which family.
    pub family: Family,
    /// From so many addresses of IPv4, or /64s of IPv6.
    pub from: u64,
    /// To so many.
    pub to: u64,
    /// By what it may multiply.
    pub factor: u32,
}

/// What feeds cover of which the list itself, in the configuration, says nothing.
pub(super) fn beyond_own<'f>(own: &[IpNet], feeds: impl Iterator<Item = &'f [IpNet]>) -> Coverage {
    let mut all = own.to_vec();
    let own = Coverage::of(&IpNet::aggregate(&all));
    for feed in feeds {
        all.extend_from_slice(feed);
    }
    Coverage::of(&IpNet::aggregate(&all)).beyond(own)
}
