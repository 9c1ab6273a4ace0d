//! The pressure on the sources of a sieve, and its counters.

use core::ops::AddAssign;

use super::MAX_SIEVES;
use crate::{
    counters::Traffic,
    limit::{LimitId, MAX_LIMIT_IDS},
};

/// The number of pressures and of sets of counters: one for each limit's use of a sieve, by
/// interned id, and one for each sieve's use on the whole interface.
pub const PRESSURES: u32 = MAX_LIMIT_IDS + MAX_SIEVES;

/// Returns the index of the pressure of a limit's use of a sieve.
#[must_use]
pub const fn pressure_of_limit(limit: LimitId) -> u32 {
    limit.0 as u32 % MAX_LIMIT_IDS
}

/// Returns the index of the pressure of a sieve's use on the whole interface, by the sieve's index
/// in the policy.
#[must_use]
pub const fn pressure_of_sieve(sieve: u32) -> u32 {
    MAX_LIMIT_IDS + sieve % MAX_SIEVES
}

/// The pressure of a sieve's use: it decides how much is rejected.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Pressure {
    /// Traffic Server's pressure plus 1; 0: there is no pressure, and no source is scored.
    pub above: u32,
    /// Always 0.
    pub reserved: u32,
    /// The end of the pressure, in nanoseconds of the decision's clock, so that a dead daemon's pressure
    /// soon stops rejecting sources.
    pub until_ns: u64,
}

impl Pressure {
    /// Makes a pressure that rejects sources in lists below `pressure`, until a time of the
    /// decision's clock in nanoseconds.
    #[must_use]
    pub const fn new(pressure: u32, until_ns: u64) -> Self {
        Self {
            above: pressure.saturating_add(1),
            reserved: 0,
            until_ns,
        }
    }

    /// Returns [`Self::above`] if the pressure holds at `now_ns`; else 0.
    #[must_use]
    #[inline(always)]
    pub const fn at(&self, now_ns: u64) -> u32 {
        if now_ns < self.until_ns {
            self.above
        } else {
            0
        }
    }
}

/// The counters of one use of a sieve.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct SieveTraffic {
    /// All arrivals, with and without pressure; they are the measure of the pressure.
    pub arrived: Traffic,
    /// Dropped because the source was in too low a list other than 0.
    pub iprep: Traffic,
    /// Dropped because the source was in list 0.
    pub iprep_perma: Traffic,
    /// Packets that counted as a hit.
    pub scored: u64,
    /// Packets that were not counted as a hit, because other CPUs held the shard.
    pub contended: u64,
}

impl AddAssign for SieveTraffic {
    fn add_assign(&mut self, other: Self) {
        self.arrived += other.arrived;
        self.iprep += other.iprep;
        self.iprep_perma += other.iprep_perma;
        self.scored = self.scored.wrapping_add(other.scored);
        self.contended = self.contended.wrapping_add(other.contended);
    }
}
