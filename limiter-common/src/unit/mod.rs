//! Units: what the states of buckets count in.
//!
//! A state of GCRA is a time in ticks. What it is worth, in tokens, depends on the emission
//! interval and the tick length of the limit that wrote it; a state of another strategy has its
//! own [`Layout`]; and a token is a packet, a byte or a new connection. So every state says in which
//! unit it counts, by the unit's number, and whoever knows the units can compare and exchange states
//! of different limits and different policies.

mod exchange;
#[cfg(not(target_arch = "bpf"))]
mod owed;

use crate::{
    limit::Cost,
    ratio::Ratio,
    strategy::{Budget, Layout, Strategy, Window, gcra::MAX_BURST_OFFSET, moving_window},
};

/// How many bits the number of a unit has.
pub const UNIT_BITS: u32 = 16;

/// How many numbers of units there are.
pub const MAX_UNITS: u32 = 1 << UNIT_BITS;

/// The bit by which the number of a unit tells that its states are not TATs in nanoseconds.
pub const ODD_UNIT: u32 = MAX_UNITS / 2;

/// How many units of each kind there may be: those of TATs in nanoseconds, and the others.
pub const MAX_UNITS_OF_KIND: u32 = ODD_UNIT;

/// The units that there are.
pub trait KnownUnits {
    /// The unit of a number.
    fn unit(&self, number: u32) -> Option<&Unit>;

    /// [`Unit::exchange`] between units by their numbers; a bucket in none owes nothing.
    ///
    /// The kernel program makes it a function of its own, which the verifier walks once; so with
    /// the next one.
    #[inline(always)]
    fn exchange(&self, from: u32, to: u32, now_ns: u64, state: u64) -> u64 {
        match (self.unit(from), self.unit(to)) {
            (Some(from), Some(to)) => to.exchange(from, now_ns, state),
            _ => 0,
        }
    }

    /// [`Unit::weight`] by the unit's number; in none it is that of TATs in nanoseconds.
    #[inline(always)]
    fn weight(&self, unit: u32, now_ns: u64, state: u64) -> u64 {
        match self.unit(unit) {
            Some(unit) => unit.weight(now_ns, state),
            None => state.saturating_sub(now_ns),
        }
    }
}

/// What a state counts in. The burst is no part of it: what is owed is the same for any.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(C)]
pub struct Unit {
    /// Of GCRA the emission interval, of windows the period, in ticks; of moving windows, which
    /// need none, 1. 0: no unit.
    pub interval: u64,
    /// Converts a time in nanoseconds to ticks of GCRA.
    pub ticks_per_ns: Ratio,
    /// Converts a duration in ticks of GCRA to nanoseconds.
    pub ns_per_tick: Ratio,
    /// What a token is: a [`Cost`] as its number.
    pub cost: u32,
    /// What the bits of a state mean.
    pub layout: Layout,
}

impl Unit {
    /// The unit of a limit's buckets.
    #[must_use]
    pub const fn new(budget: &Budget, cost: Cost) -> Self {
        let layout = budget.window.layout;
        let (ticks_per_ns, ns_per_tick, interval) = match layout.strategy() {
            Strategy::Gcra => (
                budget.gcra.ticks_per_ns,
                budget.gcra.ns_per_tick,
                budget.gcra.emission_interval,
            ),
            Strategy::FixedWindow | Strategy::SlidingWindowCounter => {
                (Ratio::ONE, Ratio::ONE, budget.window.period)
            }
            Strategy::MovingWindow => (Ratio::ONE, Ratio::ONE, 1),
        };
        Self {
            interval,
            ticks_per_ns,
            ns_per_tick,
            cost: cost as u32,
            layout,
        }
    }

    /// The unit of the stamps of a moving window: of TATs in nanoseconds.
    ///
    /// Its interval tells it from those of limits, but for one of a token in over a century: what
    /// that one's buckets owe is a token at most, which is moved as a stamp is.
    #[must_use]
    pub const fn of_stamps(cost: Cost) -> Self {
        Self {
            interval: MAX_BURST_OFFSET,
            ticks_per_ns: Ratio::ONE,
            ns_per_tick: Ratio::ONE,
            cost: cost as u32,
            layout: Layout::GCRA,
        }
    }

    /// Whether its states are the stamps of a moving window, which are no buckets that people know.
    #[cfg(not(target_arch = "bpf"))]
    #[must_use]
    pub fn is_of_stamps(&self) -> bool {
        self.interval == MAX_BURST_OFFSET && !self.is_odd()
    }

    /// Whether its states are other than TATs in nanoseconds.
    #[must_use]
    pub fn is_odd(&self) -> bool {
        self.ticks_per_ns != Ratio::ONE || self.layout != Layout::GCRA
    }

    /// What the states of windows count in, as far as they do: no count.
    #[inline(always)]
    const fn window(&self) -> Window {
        Window {
            count: 0,
            period: self.interval,
            layout: self.layout,
            reserved: 0,
        }
    }

    /// The time `now_ns` in this unit's ticks.
    #[must_use]
    #[inline(always)]
    pub const fn ticks(&self, now_ns: u64) -> u64 {
        self.layout.ticks(self.ticks_per_ns.scale(now_ns))
    }

    /// How much longer, in nanoseconds, until the bucket of that state is full; 0 exactly when it
    /// is.
    #[must_use]
    #[inline(always)]
    pub const fn debt_ns(&self, now_ns: u64, state: u64) -> u64 {
        let now = self.ticks(now_ns);
        match self.layout.strategy() {
            Strategy::Gcra => {
                if state <= now {
                    0
                } else {
                    self.ns_per_tick.scale(state - now).saturating_add(1)
                }
            }
            Strategy::FixedWindow | Strategy::SlidingWindowCounter => {
                self.layout.ns(self.window().until_forgotten(state, now))
            }
            Strategy::MovingWindow => moving_window::until_forgotten(state, now_ns),
        }
    }

    /// How much its owner would gain if the bucket of that state were forgotten: of several that
    /// are in the way, the one with the least weight goes. In nanoseconds, 0 exactly when it is
    /// full.
    ///
    /// By GCRA who owes less is full sooner. A window that has counted a packet lasts as long as
    /// one that has counted all of them, so of windows the time left counts by about the share
    /// that was used.
    #[must_use]
    #[inline(always)]
    pub const fn weight(&self, now_ns: u64, state: u64) -> u64 {
        match self.layout.strategy() {
            Strategy::Gcra | Strategy::MovingWindow => self.debt_ns(now_ns, state),
            Strategy::FixedWindow | Strategy::SlidingWindowCounter => {
                let weight = self.window().weight(state, self.ticks(now_ns));
                self.layout.ns(weight)
            }
        }
    }
}
