//! Sieves: which sources are busy, so that under pressure the busiest are dropped first.

mod percentage;
mod show;
mod sizes;

use limiter_common::{
    limit::LimitId,
    sieve::{MAX_SIEVES, pressure_of_limit, pressure_of_sieve},
};
use serde::{Deserialize, Serialize};

pub use self::{
    percentage::{InvalidPercentage, Percentage},
    sizes::SieveSizes,
};
use super::{Limit, Mode, Policy};

/// A sieve: lists of addresses by how busy they are.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sieve {
    /// Its name in files and on screens.
    pub name: String,
    /// How many lists there are besides the perma-block list, from 1 to [`Self::MOST_BUCKETS`].
    /// The last is the entry list; the lower a list, the busier who is in it.
    pub buckets: u8,
    /// The entry list holds two to the power of this, each list below one half of the one above;
    /// more than `buckets`, at most [`Self::MOST_SIZE`]. 0: the sieve is off.
    pub size: u8,
    /// Of the limit: from there on the pressure rises.
    pub percentage: Percentage,
    /// From which age on an entry is aged, in nanoseconds; 0: never.
    pub max_age_ns: u64,
    /// Who is dropped first.
    pub perma_block: PermaBlock,
    /// How many leading bits of an IPv6 source are scored as one.
    pub ipv6_prefix: u8,
    /// Whose pressure it is under; `None`: that of each limit that uses it.
    pub pressure: Option<PressureOf>,
}

/// Which entries get into the perma-block list, list 0, and when they leave it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PermaBlock {
    /// Those with a higher count than this,
    pub limit: u32,
    /// in this list or a lower one; 0: nobody.
    pub threshold: u8,
    /// From which age on an entry there is aged, in nanoseconds; 0: never.
    pub max_age_ns: u64,
}

/// What a sieve's own pressure is measured by.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PressureOf {
    /// What that limit counts, against what it lets pass: a limit of the whole interface.
    Limit(String),
    /// The packets that arrive at each use of it, against so many each second.
    PacketsPerSecond(u64),
}

/// A limit's use of a sieve, or that of the whole interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SieveUse {
    /// Whose packets: of the limit with that interned id; `None`: all packets.
    pub limit: Option<LimitId>,
    /// Which of [`Policy::sieves`] scores them; `None`: none does, their arrivals are only counted,
    /// for a sieve that is under this limit's pressure.
    pub sieve: Option<usize>,
}

impl SieveUse {
    /// The index of its pressure, and of what is counted of it; `None`: it is nobody's use.
    #[must_use]
    pub fn index(self) -> Option<u32> {
        match (self.limit, self.sieve) {
            (Some(limit), _) => Some(pressure_of_limit(limit)),
            (None, Some(sieve)) => Some(pressure_of_sieve(u32::try_from(sieve).ok()?)),
            (None, None) => None,
        }
    }
}

impl Sieve {
    /// As in Traffic Server, where fewer than 100 have to do.
    pub const MOST_BUCKETS: u8 = 99;

    /// An entry takes 64 bytes and there are up to three times two to the power of the size of
    /// them: 200 MB.
    pub const MOST_SIZE: u8 = 20;

    /// How many addresses the entry lists of all sieves of a policy may hold together: 800 MB.
    pub const MOST_ENTRIES: u64 = 1 << 22;

    /// How many there may be in a policy.
    pub const MOST: usize = MAX_SIEVES as usize;

    /// How many addresses a list holds, 0 being the perma-block list.
    #[must_use]
    pub const fn capacity(&self, list: u8) -> u32 {
        if list == 0 {
            return 1 << self.size;
        }
        1 << self.size.saturating_sub(self.buckets.saturating_sub(list))
    }

    /// Whether its lists are as many and as large as another's, for addresses cut to as many bits:
    /// then who is in them can stay.
    #[must_use]
    pub const fn has_lists_of(&self, other: &Self) -> bool {
        self.buckets == other.buckets
            && self.size == other.size
            && self.ipv6_prefix == other.ipv6_prefix
    }

    /// Whether it scores anybody.
    #[must_use]
    pub const fn is_on(&self) -> bool {
        self.size > 0
    }
}

impl Policy {
    /// Every use of a sieve that is on: those by limits in the order of the interned ids, then
    /// those on the whole interface in the order of the sieves. Limits that are off use none.
    #[must_use]
    pub fn sieve_uses(&self) -> Vec<SieveUse> {
        let on = |wanted: &str| {
            let number = self.sieves.iter().position(|sieve| sieve.name == wanted);
            number.filter(|number| self.sieves[*number].is_on())
        };
        let measured_for_a_sieve = |name: &str| {
            self.sieves.iter().any(|sieve| {
                matches!(&sieve.pressure, Some(PressureOf::Limit(limit)) if limit == name)
                    && sieve.is_on()
            })
        };
        let used = |limit: &&Limit| limit.mode != Mode::Off;
        let by_limits = self.limits.iter().filter(used).filter_map(|limit| {
            let sieve = limit.ip_rep.as_deref().and_then(on);
            (sieve.is_some() || measured_for_a_sieve(&limit.name)).then_some(SieveUse {
                limit: Some(limit.id),
                sieve,
            })
        });
        let everywhere = (0..).zip(&self.sieves).filter_map(|(number, sieve)| {
            let named = |limit: &Limit| limit.ip_rep.as_deref() == Some(&sieve.name);
            let unnamed = !self.limits.iter().any(named);
            (sieve.is_on() && sieve.pressure.is_some() && unnamed).then_some(SieveUse {
                limit: None,
                sieve: Some(number),
            })
        });
        by_limits.chain(everywhere).collect()
    }
}
