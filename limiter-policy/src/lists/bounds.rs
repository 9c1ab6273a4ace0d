//! The bounds of a list's feeds. A feed's author decides which addresses are blocked or excluded; these
//! bounds, from the configuration, limit how many.

use std::fmt;

use ipnet::IpNet;
use jiff::{SignedDuration, Timestamp};
use limiter_common::address::Family;
use serde::{Deserialize, Serialize};

use super::coverage::Coverage;
use crate::{fraction::Fraction, text};

/// The fraction of each family that a list's feeds may cover, and the growth and loss of a single feed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bounds {
    /// The fraction of all IPv4 addresses.
    pub ipv4: Fraction,
    /// The fraction of the internet's IPv6 addresses, 2000::/3.
    pub ipv6: Fraction,
    /// The factor by which a feed may grow within a day; `None`: any.
    pub growth: Option<u32>,
    /// The fraction of its prefixes that a feed may lose at once.
    #[serde(default = "Bounds::default_loss")] // A manifest of an older limiter has none.
    pub loss: Fraction,
}

/// For comparison: 14 % of IPv4 is not routed; the registries hold 2 % of IPv6.
impl Default for Bounds {
    fn default() -> Self {
        Self {
            ipv4: Fraction::from_millionths(200_000),
            ipv6: Fraction::from_millionths(1_000),
            growth: Some(2),
            loss: Self::default_loss(),
        }
    }
}

/// The coverage from which a feed's growth is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Baseline {
    /// The coverage.
    pub covers: Coverage,
    /// The time of the measurement.
    pub since: Timestamp,
}

impl Baseline {
    /// The lifetime of a baseline. A feed that always stays just below the factor grows by it only once a
    /// day.
    const HOLDS: SignedDuration = SignedDuration::from_hours(24);

    /// Returns the baseline from now on, for a feed that now covers `covers`.
    pub(super) fn next(self, covers: Coverage, now: Timestamp) -> Self {
        let age = now.duration_since(self.since);
        if age.is_negative() || age >= Self::HOLDS {
            return Self { covers, since: now };
        }
        self
    }
}

/// Any feed may grow to this size: an IPv4 /16, an IPv6 /32.
const SMALL: Coverage = Coverage {
    ipv4_addresses: 1 << 16,
    ipv6_64s: 1 << 32,
};

/// A feed of so few prefixes may lose all: a site's own bans come and go.
const FEW: u64 = 100;

impl Bounds {
    /// Checks the coverage of a feed, or of all feeds of a list together.
    ///
    /// # Errors
    ///
    /// The first family with too much coverage.
    pub fn check_coverage(&self, covers: Coverage) -> Result<(), Excess> {
        for (family, most) in [(Family::V4, self.ipv4), (Family::V6, self.ipv6)] {
            let fraction = covers.fraction(family);
            if fraction > most {
                return Err(Excess {
                    family,
                    fraction,
                    most,
                });
            }
        }
        Ok(())
    }

    /// Checks a feed's growth since the baseline, and its loss since its last content, in prefixes.
    pub(super) fn check_change(
        &self,
        (baseline, covers): (Coverage, Coverage),
        (before, prefixes): (u64, u64),
    ) -> Result<(), Change> {
        self.check_growth(baseline, covers)?;
        let lost = u128::from(before.saturating_sub(prefixes));
        let most = u128::from(before) * u128::from(self.loss.millionths());
        if before > FEW && lost * u128::from(Fraction::WHOLE.millionths()) > most {
            return Err(Change::Loss {
                from: before,
                to: prefixes,
                most: self.loss,
            });
        }
        Ok(())
    }

    fn check_growth(&self, from: Coverage, to: Coverage) -> Result<(), Change> {
        let Some(factor) = self.growth else {
            return Ok(());
        };
        for family in [Family::V4, Family::V6] {
            let (from, to) = (from.in_family(family), to.in_family(family));
            let most = from.saturating_mul(factor.into());
            if to > most.max(SMALL.in_family(family)) {
                return Err(Change::Growth {
                    family,
                    from,
                    to,
                    factor,
                });
            }
        }
        Ok(())
    }

    /// Catches a half-written file. Published feeds lose less from one day to the next.
    const fn default_loss() -> Fraction {
        Fraction::from_millionths(300_000)
    }
}

/// A coverage beyond the bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Excess {
    /// The family.
    pub family: Family,
    /// The fraction they cover.
    pub fraction: Fraction,
    /// The fraction they may cover.
    pub most: Fraction,
}

impl Excess {
    /// Returns a phrase for the whole that the fraction belongs to.
    #[must_use]
    pub const fn space(&self) -> &'static str {
        match self.family {
            Family::V4 => "all IPv4 addresses",
            Family::V6 => "the IPv6 addresses of the internet (2000::/3)",
        }
    }
}

/// A change beyond the bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// It has grown.
    Growth {
        /// The family that has grown.
        family: Family,
        /// The old coverage: IPv4 addresses, or IPv6 /64s.
        from: u64,
        /// The new coverage.
        to: u64,
        /// The maximum factor.
        factor: u32,
    },
    /// It has shrunk.
    Loss {
        /// The old number of prefixes.
        from: u64,
        /// The new number of prefixes.
        to: u64,
        /// The maximum fraction of the prefixes that may go.
        most: Fraction,
    },
}

impl fmt::Display for Change {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Growth {
                family,
                from,
                to,
                factor,
            } => {
                let unit = match family {
                    Family::V4 => "IPv4 addresses",
                    Family::V6 => "IPv6 /64s",
                };
                let (from, to) = (text::count(from), text::count(to));
                write!(
                    formatter,
                    "grow from {from} to {to} {unit}, more than {factor}-fold within a day"
                )
            }
            Self::Loss { from, to, most } => {
                let (from, to) = (text::count(from), text::count(to));
                write!(
                    formatter,
                    "shrink from {from} to {to} prefixes, by more than {most}"
                )
            }
        }
    }
}

/// Returns the coverage of feeds beyond the list's own prefixes in the configuration.
pub(super) fn beyond_own<'f>(own: &[IpNet], feeds: impl Iterator<Item = &'f [IpNet]>) -> Coverage {
    let mut all = own.to_vec();
    let own = Coverage::of(&IpNet::aggregate(&all));
    for feed in feeds {
        all.extend_from_slice(feed);
    }
    Coverage::of(&IpNet::aggregate(&all)).beyond(own)
}
