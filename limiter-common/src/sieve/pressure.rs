//! How much a sieve is to reject, and what is counted of it.

use core::ops::AddAssign;

use super::MAX_SIEVES;
use crate::{
    counters::Traffic,
    limit::{LimitId, MAX_LIMIT_IDS},
};

/// How many pressures there are, and sets of counters: one for each interned id of a limit, for
/// its use of a sieve, and one for each sieve's use on the whole interface.
pub const PRESSURES: u32 = MAX_LIMIT_IDS + MAX_SIEVES;

/// The index of the pressure of a limit's use of a sieve.
#[must_use]
pub const fn pressure_of_limit(limit: LimitId) -> u32 {
    limit.0 as u32 % MAX_LIMIT_IDS
}

/// The index of the pressure of a sieve's use on the whole interface, by the sieve's place among
/// those of the policy.
#[must_use]
pub const fn pressure_of_sieve(sieve: u32) -> u32 {
    MAX_LIMIT_IDS + sieve % MAX_SIEVES
}

/// How much is to be rejected.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Pressure {
    /// Traffic Server's pressure, plus 1; 0: there is none, and nobody is scored.
    pub above: u32,
    /// Always 0.
    pub reserved: u32,
    /// Until when it holds, in nanoseconds of the decision's clock: should the daemon die, nobody
    /// is rejected for long.
    pub until_ns: u64,
}

impl Pressure {
    /// With who is in a list below `pressure` rejected, until a time of the decision's clock in
    /// nanoseconds.
    #[must_use]
    pub const fn new(pressure: u32, until_ns: u64) -> Self {
        Self {
            above: pressure.saturating_add(1),
            reserved: 0,
            until_ns,
        }
    }

    /// [`Self::above`], if it holds at `now_ns`; else 0.
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

/// What was counted of one use of a sieve.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct SieveTraffic {
    /// All that came to it, under pressure or not: what the pressure is measured by.
    pub arrived: Traffic,
    /// Dropped, the source being in too low a list but 0.
    pub iprep: Traffic,
    /// Dropped, the source being in list 0.
    pub iprep_perma: Traffic,
    /// Packets that counted as a hit.
    pub scored: u64,
    /// Packets that did not though they should have, since other CPUs held the shard.
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
