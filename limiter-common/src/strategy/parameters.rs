//! Budgets: the amount that a limit admits for a key.

use super::{Strategy, gcra::Gcra, window::Window};

/// A limit's parameters as the datapath computes with them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(C)]
pub struct Parameters {
    /// The parameters of GCRA; for other strategies [`Gcra::NONE`].
    pub gcra: Gcra,
    /// The parameters of a window; for GCRA [`Window::NONE`].
    pub window: Window,
    /// The number of the unit that the buckets' states count in.
    pub unit: u32,
    /// For a moving window, the number of the unit that its stamps count in.
    pub stamp_unit: u32,
}

/// The cost is more tokens than a bucket ever has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LargerThanBudget;

impl Parameters {
    /// The parameters of no limit.
    pub const NONE: Self = Self::of_gcra(Gcra::NONE);

    /// Makes the parameters of a limit by GCRA, in the unit of number 0.
    #[must_use]
    pub const fn of_gcra(gcra: Gcra) -> Self {
        Self {
            gcra,
            window: Window::NONE,
            unit: 0,
            stamp_unit: 0,
        }
    }

    /// The strategy.
    #[must_use]
    #[inline(always)]
    pub const fn strategy(&self) -> Strategy {
        self.window.layout.strategy()
    }

    /// The maximum number of open connections, for a limit on connections: its rate is one token per nanosecond, so the
    /// burst offset is the number.
    #[must_use]
    #[inline(always)]
    pub const fn connections(&self) -> u64 {
        self.gcra.burst_offset
    }

    /// Converts a duration in the ticks of the states to nanoseconds, rounded down.
    #[must_use]
    #[inline(always)]
    pub const fn ns(&self, ticks: u64) -> u64 {
        // One of the two belongs to no limit, and changes nothing.
        self.window.layout.ns(self.gcra.ns(ticks))
    }
}

#[cfg(not(target_arch = "bpf"))]
impl Parameters {
    /// The same limit by GCRA at another rate; see [`Gcra::at_interval`].
    #[must_use]
    pub fn at_interval(&self, emission_interval: u64) -> Self {
        Self {
            gcra: self.gcra.at_interval(emission_interval),
            ..*self
        }
    }

    /// Makes the parameters of a limit by windows, in the unit of number 0.
    pub(super) const fn of_window(window: Window) -> Self {
        Self {
            window,
            ..Self::NONE
        }
    }
}
