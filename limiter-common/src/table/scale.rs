//! Tick lengths: by them one bucket of a line can be compared with another of other limits.

use crate::ratio::Ratio;

/// The tick length of some limits of a policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Scale {
    /// Converts a time in nanoseconds to ticks.
    pub ticks_per_ns: Ratio,
    /// Converts a duration in ticks to nanoseconds.
    pub ns_per_tick: Ratio,
}

impl Scale {
    /// A tick is a nanosecond.
    pub const NANOSECOND: Self = Self {
        ticks_per_ns: Ratio::ONE,
        ns_per_tick: Ratio::ONE,
    };

    /// How much longer, in nanoseconds, until the bucket of that TAT is full; 0 exactly when it
    /// is.
    #[must_use]
    #[inline(always)]
    pub const fn debt_ns(&self, now_ns: u64, tat: u64) -> u64 {
        let now = self.ticks_per_ns.scale(now_ns);
        if tat <= now {
            0
        } else {
            self.ns_per_tick.scale(tat - now).saturating_add(1)
        }
    }
}
