//! Strategies: by which rule a limit holds its owners to its count and period.
//!
//! Each is a pure function of a bucket's state, the time and the cost, in a file of its own; here
//! is what chooses between them, and what a bucket store needs to know of any.

mod budget;
mod fixed_window;
pub mod gcra;
mod layout;
mod level;
pub mod moving_window;
#[cfg(test)]
mod one_bucket;
mod refund;
mod sliding_window_counter;
mod spend;
mod window;

#[cfg(not(target_arch = "bpf"))]
pub(crate) use self::window::Seen;
pub use self::{
    budget::{Budget, LargerThanBudget},
    layout::Layout,
    level::{Level, Report},
    spend::{Change, Decision, NEVER, Spend},
    window::Window,
};

/// By which rule a limit decides. The numbers stand in what is kept from one policy to the next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(rename_all = "kebab-case")
)]
pub enum Strategy {
    /// The generic cell rate algorithm: a bucket of `burst` tokens that refills evenly.
    #[default]
    Gcra = 0,
    /// At most `count` from the first packet on until a period later.
    FixedWindow = 1,
    /// At most `count` in any period, by a log of the last ones.
    MovingWindow = 2,
    /// At most `count` in this bucket of a period and, by its share, the one before.
    SlidingWindowCounter = 3,
}

impl Strategy {
    /// Every strategy, in the order of its number.
    pub const ALL: [Self; 4] = [
        Self::Gcra,
        Self::FixedWindow,
        Self::MovingWindow,
        Self::SlidingWindowCounter,
    ];

    /// The strategy's name in configuration files and output.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Gcra => "gcra",
            Self::FixedWindow => "fixed-window",
            Self::MovingWindow => "moving-window",
            Self::SlidingWindowCounter => "sliding-window-counter",
        }
    }

    /// The most tokens that a limit may count; what GCRA counts is bounded by its refilling.
    #[must_use]
    pub const fn largest_count(self) -> u64 {
        match self {
            Self::Gcra => u64::MAX,
            Self::FixedWindow => Layout::LARGEST_COUNT,
            Self::MovingWindow => moving_window::STAMPS,
            Self::SlidingWindowCounter => Layout::LARGEST_SLIDING_COUNT,
        }
    }

    /// The most tokens that pass in a period, its end not included, whatever the bucket holds
    /// when it begins.
    #[must_use]
    pub const fn most_in_a_period(self, burst: u64, count: u64) -> u64 {
        match self {
            Self::Gcra => burst.saturating_add(count),
            Self::FixedWindow => count.saturating_mul(2).saturating_sub(1),
            Self::SlidingWindowCounter if count > 1 => (count - 1).saturating_mul(2),
            Self::SlidingWindowCounter | Self::MovingWindow => count,
        }
    }

    /// The strategy of that number; of another one GCRA, whose number is the least.
    #[must_use]
    #[inline(always)]
    pub const fn of_number(number: u8) -> Self {
        const FIXED_WINDOW: u8 = Strategy::FixedWindow as u8;
        const MOVING_WINDOW: u8 = Strategy::MovingWindow as u8;
        const SLIDING_WINDOW_COUNTER: u8 = Strategy::SlidingWindowCounter as u8;
        match number {
            FIXED_WINDOW => Self::FixedWindow,
            MOVING_WINDOW => Self::MovingWindow,
            SLIDING_WINDOW_COUNTER => Self::SlidingWindowCounter,
            _ => Self::Gcra,
        }
    }
}
