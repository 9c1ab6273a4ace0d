//! The amount that a packet takes from a bucket, in a form that a table can decide on repeatedly.

use super::{Layout, NO_STATE, Strategy, gcra, window::Window};

/// The amount that a packet takes from a bucket, in plain numbers. Together with the bucket's state, it suffices for a
/// decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Spend {
    /// The time, in ticks.
    now: u64,
    /// The cost: for GCRA in ticks, for windows in tokens.
    increment: u64,
    /// For GCRA the latest allowed TAT; for windows the maximum number of tokens.
    most: u64,
    /// For windows, the period in ticks.
    period: u64,
    layout: Layout,
    /// Always 0.
    reserved: u32,
}

impl Spend {
    /// A spend of nothing, from no bucket.
    pub const NONE: Self = Self::of_gcra(gcra::Spend::NONE);

    /// Makes a spend from a bucket of GCRA.
    #[must_use]
    #[inline(always)]
    pub const fn of_gcra(spend: gcra::Spend) -> Self {
        let gcra::Spend {
            now,
            increment,
            latest,
        } = spend;
        Self {
            now,
            increment,
            most: latest,
            period: 0,
            layout: Layout::GCRA,
            reserved: 0,
        }
    }

    /// Makes a spend of `cost` tokens from a window at the time `now`, in ticks.
    #[inline(always)]
    pub(super) const fn of_window(window: &Window, now: u64, cost: u64) -> Self {
        Self {
            now,
            increment: cost,
            most: window.count,
            period: window.period,
            layout: window.layout,
            reserved: 0,
        }
    }

    /// Overwrites the spend with one of GCRA; it must never have been of another strategy. Writes in place, and only
    /// the fields that GCRA reads: in BPF, writing all would be a call to a loop over bytes.
    #[inline(always)]
    pub(crate) const fn set_gcra(&mut self, spend: &gcra::Spend) {
        self.now = spend.now;
        self.increment = spend.increment;
        self.most = spend.latest;
    }

    /// Replaces the cost: for GCRA in ticks, for windows in tokens.
    #[inline(always)]
    pub(crate) fn map_increment(&mut self, then: impl FnOnce(u64) -> u64) {
        self.increment = then(self.increment);
    }

    /// The same spend of GCRA, which must [leave a reserve](gcra::Spend::leaving) of that many ticks in the bucket.
    #[must_use]
    #[inline(always)]
    pub const fn leaving(self, reserve: u64) -> Self {
        Self {
            most: self.gcra().leaving(reserve).latest,
            ..self
        }
    }

    /// Makes a spend of `increment` at the time `now`, both in ticks of GCRA, that passes at any level of the bucket:
    /// for moving debts, and for handshakes, not for packets. It refuses only to make [`super::NO_STATE`], a lock.
    #[must_use]
    #[inline(always)]
    pub const fn unbounded(now: u64, increment: u64) -> Self {
        Self::of_gcra(gcra::Spend::new(now, increment, NO_STATE - 1))
    }

    /// The strategy.
    #[must_use]
    #[inline(always)]
    pub const fn strategy(&self) -> Strategy {
        self.layout.strategy()
    }

    /// The spend as one of GCRA.
    #[must_use]
    #[inline(always)]
    pub const fn gcra(&self) -> gcra::Spend {
        gcra::Spend::new(self.now, self.increment, self.most)
    }

    /// The parameters of its window.
    #[must_use]
    #[inline(always)]
    pub const fn window(&self) -> Window {
        Window {
            count: self.most,
            period: self.period,
            layout: self.layout,
            reserved: 0,
        }
    }

    /// The layout of the bucket's states.
    #[must_use]
    #[inline(always)]
    pub const fn layout(&self) -> Layout {
        self.layout
    }

    /// The time, in ticks.
    #[inline(always)]
    pub(crate) const fn now(&self) -> u64 {
        self.now
    }

    /// The cost in a window, in tokens.
    #[inline(always)]
    pub(super) const fn cost(&self) -> u64 {
        self.increment
    }

    /// The maximum number of tokens of the window.
    #[inline(always)]
    pub(crate) const fn count(&self) -> u64 {
        self.most
    }
}
