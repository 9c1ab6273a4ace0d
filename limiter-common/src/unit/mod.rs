//! Units: what the states of buckets count in.
//!
//! A state is a time in ticks. What it is worth, in tokens, depends on the emission interval and
//! the tick length of the limit that wrote it; and a token is a packet, a byte or a new
//! connection. So every state says in which unit it counts, by the unit's number, and whoever
//! knows the units can compare and exchange states of different limits and different policies.

mod exchange;

use crate::{gcra::Gcra, limit::Cost, ratio::Ratio};

/// How many bits the number of a unit has.
pub const UNIT_BITS: u32 = 16;

/// How many numbers of units there are.
pub const MAX_UNITS: u32 = 1 << UNIT_BITS;

/// The bit by which the number of a unit tells that its tick is another than a nanosecond.
pub const ODD_TICK: u32 = MAX_UNITS / 2;

/// How many units of each kind there may be: those that count in nanoseconds, and the others.
pub const MAX_UNITS_OF_KIND: u32 = ODD_TICK;

/// The units that there are.
pub trait KnownUnits {
    /// The unit of a number.
    fn unit(&self, number: u32) -> Option<&Unit>;
}

/// [`Unit::exchange`] between units by their numbers.
#[inline(always)]
pub fn exchange<U: KnownUnits>(units: &U, from: u32, to: u32, now_ns: u64, tat: u64) -> u64 {
    match (units.unit(from), units.unit(to)) {
        (Some(from), Some(to)) => to.exchange(from, now_ns, tat),
        // It owes nothing.
        _ => 0,
    }
}

/// What a state counts in. The burst is no part of it: what is owed is the same for any.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(C)]
pub struct Unit {
    /// Ticks that a token is worth; 0: no unit.
    pub emission_interval: u64,
    /// Converts a time in nanoseconds to ticks.
    pub ticks_per_ns: Ratio,
    /// Converts a duration in ticks to nanoseconds.
    pub ns_per_tick: Ratio,
    /// What a token is: a [`Cost`] as its number.
    pub cost: u32,
    /// Always 0.
    pub reserved: u32,
}

impl Unit {
    /// The unit of a limit's buckets.
    #[must_use]
    pub const fn new(gcra: &Gcra, cost: Cost) -> Self {
        Self {
            emission_interval: gcra.emission_interval,
            ticks_per_ns: gcra.ticks_per_ns,
            ns_per_tick: gcra.ns_per_tick,
            cost: cost as u32,
            reserved: 0,
        }
    }

    /// Whether a tick is another than a nanosecond.
    #[must_use]
    pub fn has_odd_tick(&self) -> bool {
        self.ticks_per_ns != Ratio::ONE
    }

    /// The time `now_ns` in this unit's ticks.
    #[must_use]
    #[inline(always)]
    pub const fn ticks(&self, now_ns: u64) -> u64 {
        self.ticks_per_ns.scale(now_ns)
    }

    /// How much longer, in nanoseconds, until the bucket of that TAT is full; 0 exactly when it
    /// is.
    #[must_use]
    #[inline(always)]
    pub const fn debt_ns(&self, now_ns: u64, tat: u64) -> u64 {
        let now = self.ticks(now_ns);
        if tat <= now {
            0
        } else {
            self.ns_per_tick.scale(tat - now).saturating_add(1)
        }
    }
}
