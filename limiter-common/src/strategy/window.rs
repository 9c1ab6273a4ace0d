//! What fixed windows and sliding window counters have in common: a count of tokens in a bucket of
//! time that ends.

use super::Layout;
#[cfg(not(target_arch = "bpf"))]
use super::Strategy;

/// The parameters of a window strategy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(C)]
pub struct Window {
    /// The most tokens of a window.
    pub count: u64,
    /// How long it is, in the layout's ticks: not shorter than configured.
    pub period: u64,
    /// What the bits of its states mean.
    pub layout: Layout,
    /// Always 0.
    pub reserved: u32,
}

/// A window at one time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Seen {
    /// How long the current bucket lasts yet, in ticks; 0: there is none.
    pub(crate) left: u64,
    /// What was counted in it.
    pub(crate) count: u64,
    /// What was counted in the one before.
    pub(crate) previous: u64,
}

impl Seen {
    /// No window.
    const NONE: Self = Self {
        left: 0,
        count: 0,
        previous: 0,
    };
}

impl Window {
    /// Of no limit.
    pub const NONE: Self = Self {
        count: 0,
        period: 0,
        layout: Layout::GCRA,
        reserved: 0,
    };

    /// The parameters of a fixed window or a sliding window counter of `count` tokens in periods
    /// of `period_ns` nanoseconds; `None`: one of them is 0 or too large.
    #[cfg(not(target_arch = "bpf"))]
    #[must_use]
    pub const fn new(strategy: Strategy, count: u64, period_ns: u64) -> Option<Self> {
        if count == 0 || period_ns == 0 || period_ns > super::gcra::MAX_BURST_OFFSET {
            return None;
        }
        match Layout::of_window(strategy, count, period_ns) {
            Some(layout) => Some(Self {
                count,
                period: layout.whole_ticks(period_ns),
                layout,
                reserved: 0,
            }),
            None => None,
        }
    }

    /// What a state says at the time `now`, in ticks.
    ///
    /// A bucket that ends up to two periods ahead is the current one: the clock of another CPU may
    /// be ahead of this one's. Of a sliding window counter, one that has ended less than a period
    /// ago is the one before.
    #[inline(always)]
    pub(crate) const fn see(&self, state: u64, now: u64) -> Seen {
        let layout = self.layout;
        let left = layout.until_end(state, now);
        let (count, previous) = (layout.count(state), layout.previous(state));
        if count | previous == 0 {
            return Seen::NONE;
        }
        if left != 0 && left <= 2 * self.period {
            return Seen {
                left,
                count,
                previous,
            };
        }
        let shifted = layout.wrapped(left.wrapping_add(self.period));
        if layout.keeps_previous() && count != 0 && shifted != 0 && shifted <= self.period {
            return Seen {
                left: shifted,
                count: 0,
                previous: count,
            };
        }
        Seen::NONE
    }

    /// The state that says so at the time `now`, in ticks.
    #[inline(always)]
    pub(crate) const fn state(&self, seen: &Seen, now: u64) -> u64 {
        if seen.count | seen.previous == 0 {
            return 0;
        }
        self.layout
            .state(now.wrapping_add(seen.left), seen.count, seen.previous)
    }

    /// The state in another window of what a state says in this one: the same counts, and the
    /// same time left, if that is a period at most. The times are the same one in the ticks of
    /// each.
    #[inline(always)]
    pub(crate) const fn exchanged(&self, to: &Self, state: u64, from_now: u64, now: u64) -> u64 {
        let seen = self.see(state, from_now);
        let left_ns = self.layout.ns(seen.left);
        let left = to.layout.ticks(left_ns);
        // Rounded up.
        let left = if to.layout.ns(left) < left_ns {
            left + 1
        } else {
            left
        };
        let left = if left < to.period { left } else { to.period };
        to.state(&Seen { left, ..seen }, now)
    }

    /// How long until nothing of a state counts any more, in ticks, by about the share of the limit
    /// that was counted; 0 exactly when nothing does.
    #[inline(always)]
    pub(crate) const fn weight(&self, state: u64, now: u64) -> u64 {
        let seen = self.see(state, now);
        let left = self.until_forgotten(state, now);
        // The layout leaves room for the product.
        let weight = self.layout.share(left * (seen.count + seen.previous));
        if weight == 0 && left != 0 { 1 } else { weight }
    }

    /// How long until nothing of a state counts any more, in ticks.
    #[inline(always)]
    pub(crate) const fn until_forgotten(&self, state: u64, now: u64) -> u64 {
        let seen = self.see(state, now);
        if self.layout.keeps_previous() && seen.count != 0 {
            seen.left + self.period
        } else {
            seen.left
        }
    }
}

#[cfg(test)]
mod tests;
