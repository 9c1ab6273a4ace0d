//! What fixed windows and sliding window counters have in common: a count of tokens in a bucket of
//! time that ends. A debt is a state with the time that is left in place of the end.

#[cfg(not(target_arch = "bpf"))]
use super::{Budget, NEVER, Report, Strategy, Terms, gcra::MAX_BURST_OFFSET, rule::Debt};
use super::{Layout, Spend, Unit, rule::State};
#[cfg(not(target_arch = "bpf"))]
use crate::limit::Cost;

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

    /// The parameters of a window `strategy` by its terms, which keeps what it counted in the bucket
    /// before, or not; `None`: one of them is 0 or too large.
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

/// The states of windows.
pub(crate) enum Counts {}

impl State for Counts {
    #[inline(always)]
    fn full(_: &Unit, _: u64) -> u64 {
        0
    }

    /// The window has counted as many tokens as before, for as long as the bucket of time lasts
    /// yet, a period at most. The times are the same one in the ticks of each.
    #[inline(always)]
    fn exchange(from: &Unit, to: &Unit, now_ns: u64, state: u64) -> u64 {
        let window = to.window();
        let seen = from.window().see(state, from.ticks(now_ns));
        let left_ns = from.layout.ns(seen.left);
        let left = window.layout.ticks(left_ns);
        // Rounded up.
        let left = if window.layout.ns(left) < left_ns {
            left + 1
        } else {
            left
        };
        let left = if left < window.period {
            left
        } else {
            window.period
        };
        window.state(&Seen { left, ..seen }, to.ticks(now_ns))
    }

    #[inline(always)]
    fn until_full(unit: &Unit, now_ns: u64, state: u64) -> u64 {
        let until = unit.window().until_forgotten(state, unit.ticks(now_ns));
        unit.layout.ns(until)
    }

    /// A window that has counted a packet lasts as long as one that has counted all of them, so
    /// the time left counts by about the share that was used.
    #[inline(always)]
    fn weight(unit: &Unit, now_ns: u64, state: u64) -> u64 {
        let (window, now) = (unit.window(), unit.ticks(now_ns));
        let seen = window.see(state, now);
        let left = window.until_forgotten(state, now);
        // The layout leaves room for the product.
        let weight = window.layout.share(left * (seen.count + seen.previous));
        unit.layout
            .ns(if weight == 0 && left != 0 { 1 } else { weight })
    }

    /// What was counted in the current bucket grows less; that it has refused is forgotten.
    #[inline(always)]
    fn refunded(spend: &Spend, state: u64) -> u64 {
        let (window, now) = (&spend.window(), spend.now());
        let seen = window.see(state, now);
        let counted = if seen.count < window.count {
            seen.count
        } else {
            window.count
        };
        let count = counted.saturating_sub(spend.cost());
        window.state(&Seen { count, ..seen }, now)
    }
}

#[cfg(not(target_arch = "bpf"))]
impl Debt for Counts {
    fn owed(unit: &Unit, now_ns: u64, state: u64) -> u64 {
        let window = unit.window();
        let seen = window.see(state, unit.ticks(now_ns));
        let left = seen.left.min(window.period);
        window.state(&Seen { left, ..seen }, 0)
    }

    fn since(unit: &Unit, owed: u64, before: u64) -> u64 {
        let window = unit.window();
        let (now, before) = (window.see(owed, 0), window.see(before, 0));
        // The same bucket of time, for what was rounded may make a tick of difference where that
        // is longer than a nanosecond.
        let rounded = u64::from(unit.layout.ns(1) > 1);
        let spent = if now.left.abs_diff(before.left) <= rounded {
            Seen {
                left: now.left,
                count: now.count.saturating_sub(before.count),
                previous: now.previous.saturating_sub(before.previous),
            }
        } else {
            now
        };
        window.state(&spent, 0)
    }

    fn adding(_: &Unit, _: u64, _: u64) -> Option<Spend> {
        None
    }

    /// What was counted adds up, until the window that ends later does; a debt lasts up to two
    /// ticks longer.
    fn owing(unit: &Unit, now_ns: u64, state: u64, owed: u64) -> u64 {
        let (window, now) = (unit.window(), unit.ticks(now_ns));
        let (there, added) = (window.see(state, now), window.see(owed, 0));
        if added.left == 0 {
            return state;
        }
        // Its end is not to be earlier than it was.
        let begun = u64::from(unit.layout.ns(now) < now_ns);
        let both = Seen {
            left: there.left.max(added.left + begun),
            count: there.count.saturating_add(added.count),
            previous: there.previous.saturating_add(added.previous),
        };
        window.state(&both, now)
    }
}

/// [`unit`](super::rule::Ledger::unit).
#[cfg(not(target_arch = "bpf"))]
pub(super) const fn unit(budget: &Budget, cost: Cost) -> Unit {
    Unit::in_ns(budget.window.period, budget.window.layout, cost)
}

/// [`refund`](super::rule::Ledger::refund).
#[cfg(not(target_arch = "bpf"))]
pub(super) const fn refund(budget: &Budget, now_ns: u64, cost: u64) -> Spend {
    Spend::of_window(&budget.window, budget.window.layout.ticks(now_ns), cost)
}

/// [`report`](super::rule::Ledger::report), of a bucket of which so much remains, and that makes
/// wait so many ticks.
#[cfg(not(target_arch = "bpf"))]
pub(super) const fn report(
    window: &Window,
    state: u64,
    now: u64,
    remaining: u64,
    wait: u64,
) -> Report {
    let layout = window.layout;
    Report {
        remaining,
        retry_in_ns: match wait {
            NEVER => None,
            ticks => Some(layout.ns(ticks)),
        },
        reset_in_ns: layout.ns(window.until_forgotten(state, now)),
    }
}

#[cfg(test)]
mod tests;
