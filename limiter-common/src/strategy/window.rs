//! The common part of fixed windows and sliding window counters: a count of tokens in a window that
//! ends.

use super::Layout;
#[cfg(not(target_arch = "bpf"))]
use super::{Strategy, Terms, gcra::MAX_BURST_OFFSET};

/// The parameters of a window strategy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(C)]
pub struct Window {
    /// The maximum number of tokens of a window.
    pub count: u64,
    /// The length of the window, in the layout's ticks: not shorter than configured.
    pub period: u64,
    /// The layout of the states.
    pub layout: Layout,
    /// Always 0.
    pub reserved: u32,
}

/// The counts of a window, at one time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WindowCounts {
    /// The remaining ticks of the current window; 0: no window.
    pub(crate) left: u64,
    /// The count of the current window.
    pub(crate) count: u64,
    /// The count of the previous window.
    pub(crate) previous: u64,
}

impl WindowCounts {
    /// No window.
    const NONE: Self = Self {
        left: 0,
        count: 0,
        previous: 0,
    };
}

impl Window {
    /// The window of no limit.
    pub const NONE: Self = Self {
        count: 0,
        period: 0,
        layout: Layout::GCRA,
        reserved: 0,
    };

    /// Makes the parameters of a window `strategy` by its terms, with or without the previous
    /// window's count; `None`: one of the terms is 0 or too large.
    #[cfg(not(target_arch = "bpf"))]
    pub(super) fn new(strategy: Strategy, keeps_previous: bool, terms: &Terms) -> Option<Self> {
        let Terms {
            count, period_ns, ..
        } = *terms;
        if count == 0 || period_ns == 0 || period_ns > MAX_BURST_OFFSET {
            return None;
        }
        let layout = Layout::of_window(strategy, keeps_previous, count, period_ns)?;
        Some(Self {
            count,
            period: layout.whole_ticks(period_ns),
            layout,
            reserved: 0,
        })
    }

    /// The window of a state at the time `now`, in ticks.
    ///
    /// A window that ends up to two periods ahead is the current one: the clock of another CPU may
    /// be ahead of this one's. In a sliding window counter, a window that ended less than a period
    /// ago is the previous one.
    #[inline(always)]
    pub(crate) const fn counts(&self, state: u64, now: u64) -> WindowCounts {
        let layout = self.layout;
        let left = layout.until_end(state, now);
        let (count, previous) = (layout.count(state), layout.previous(state));
        if count | previous == 0 {
            return WindowCounts::NONE;
        }
        if left != 0 && left <= 2 * self.period {
            return WindowCounts {
                left,
                count,
                previous,
            };
        }
        let shifted = layout.wrapped(left.wrapping_add(self.period));
        if layout.keeps_previous() && count != 0 && shifted != 0 && shifted <= self.period {
            return WindowCounts {
                left: shifted,
                count: 0,
                previous: count,
            };
        }
        WindowCounts::NONE
    }

    /// The state of a window at the time `now`, in ticks.
    #[inline(always)]
    pub(crate) const fn state(&self, seen: &WindowCounts, now: u64) -> u64 {
        if seen.count | seen.previous == 0 {
            return 0;
        }
        self.layout
            .state(now.wrapping_add(seen.left), seen.count, seen.previous)
    }

    /// The time until all counts of a state have expired, in ticks.
    #[inline(always)]
    pub(crate) const fn until_forgotten(&self, state: u64, now: u64) -> u64 {
        let seen = self.counts(state, now);
        if self.layout.keeps_previous() && seen.count != 0 {
            seen.left + self.period
        } else {
            seen.left
        }
    }
}

#[cfg(test)]
mod tests;
