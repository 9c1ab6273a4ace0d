//! The units that the states of buckets count in.

#[cfg(not(target_arch = "bpf"))]
use super::gcra::MAX_BURST_OFFSET;
use super::{Layout, Window};
#[cfg(not(target_arch = "bpf"))]
use crate::limit::Cost;
use crate::ratio::Ratio;

/// The unit of a bucket's state. The burst is not part of it: a debt is the same with any burst.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(C)]
pub struct Unit {
    /// For GCRA the emission interval, for windows the period, in ticks; for moving windows, which
    /// need neither, 1. 0: no unit.
    pub interval: u64,
    /// Converts a time in nanoseconds to ticks of GCRA.
    pub ticks_per_ns: Ratio,
    /// Converts a duration in ticks of GCRA to nanoseconds.
    pub ns_per_tick: Ratio,
    /// The kind of a token: the number of a [`Cost`](crate::limit::Cost).
    pub cost: u32,
    /// The meaning of a state's bits.
    pub layout: Layout,
}

impl Unit {
    /// The parameters of a window as far as the unit has them: without the count.
    #[inline(always)]
    pub(super) const fn window(&self) -> Window {
        Window {
            count: 0,
            period: self.interval,
            layout: self.layout,
            reserved: 0,
        }
    }

    /// Converts the time `now_ns` to this unit's ticks.
    #[must_use]
    #[inline(always)]
    pub const fn ticks(&self, now_ns: u64) -> u64 {
        self.layout.ticks(self.ticks_per_ns.scale(now_ns))
    }
}

#[cfg(not(target_arch = "bpf"))]
impl Unit {
    /// Makes a unit of times in nanoseconds, with `interval` nanoseconds per token.
    pub(super) const fn in_ns(interval: u64, layout: Layout, cost: Cost) -> Self {
        Self {
            interval,
            ticks_per_ns: Ratio::ONE,
            ns_per_tick: Ratio::ONE,
            cost: cost as u32,
            layout,
        }
    }

    /// The unit of a moving window's stamps, which are TATs in nanoseconds.
    ///
    /// Its interval differs from the intervals of all limits, except a limit of one token in over a
    /// century: the buckets of that limit owe at most a token, which is moved like a stamp.
    #[must_use]
    pub const fn of_stamps(cost: Cost) -> Self {
        Self::in_ns(MAX_BURST_OFFSET, Layout::GCRA, cost)
    }

    /// Whether the states are a moving window's stamps, which are hidden from people.
    #[must_use]
    pub fn is_of_stamps(&self) -> bool {
        self.interval == MAX_BURST_OFFSET && !self.is_odd()
    }

    /// Whether the states are other than TATs in nanoseconds.
    #[must_use]
    pub fn is_odd(&self) -> bool {
        self.ticks_per_ns != Ratio::ONE || self.layout != Layout::GCRA
    }
}
