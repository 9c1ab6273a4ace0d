//! The worth of the states of fixed windows and sliding window counters. A debt is a state with the
//! remaining time in place of the end.

#[cfg(not(target_arch = "bpf"))]
use super::{NEVER, Parameters, Report, Window, rule::Debt};
use super::{Spend, Unit, rule::State, window::WindowCounts};
#[cfg(not(target_arch = "bpf"))]
use crate::limit::Cost;

/// The states of windows.
pub(crate) enum WindowState {}

impl State for WindowState {
    #[inline(always)]
    fn full(_: &Unit, _: u64) -> u64 {
        0
    }

    /// The bucket keeps its count of tokens and the remaining time of its window, at most a period.
    /// `now_ns` is converted to the ticks of each unit.
    #[inline(always)]
    fn exchange(from: &Unit, to: &Unit, now_ns: u64, state: u64) -> u64 {
        let window = to.window();
        let seen = from.window().counts(state, from.ticks(now_ns));
        let left_ns = from.layout.ns(seen.left);
        let left = window.layout.ticks(left_ns);
        // Rounds up.
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
        window.state(&WindowCounts { left, ..seen }, to.ticks(now_ns))
    }

    #[inline(always)]
    fn until_full(unit: &Unit, now_ns: u64, state: u64) -> u64 {
        let until = unit.window().until_forgotten(state, unit.ticks(now_ns));
        unit.layout.ns(until)
    }

    /// A window that has counted one packet lasts as long as a full one, so the remaining time is
    /// weighted by about the used share.
    #[inline(always)]
    fn weight(unit: &Unit, now_ns: u64, state: u64) -> u64 {
        let (window, now) = (unit.window(), unit.ticks(now_ns));
        let seen = window.counts(state, now);
        let left = window.until_forgotten(state, now);
        // The layout leaves room for the product.
        let weight = window.layout.divide(left * (seen.count + seen.previous));
        unit.layout
            .ns(if weight == 0 && left != 0 { 1 } else { weight })
    }

    /// The count of the current window decreases; an earlier refusal leaves no trace.
    #[inline(always)]
    fn refunded(spend: &Spend, state: u64) -> u64 {
        let (window, now) = (&spend.window(), spend.now());
        let seen = window.counts(state, now);
        let counted = if seen.count < window.count {
            seen.count
        } else {
            window.count
        };
        let count = counted.saturating_sub(spend.cost());
        window.state(&WindowCounts { count, ..seen }, now)
    }
}

#[cfg(not(target_arch = "bpf"))]
impl Debt for WindowState {
    fn owed(unit: &Unit, now_ns: u64, state: u64) -> u64 {
        let window = unit.window();
        let seen = window.counts(state, unit.ticks(now_ns));
        let left = seen.left.min(window.period);
        window.state(&WindowCounts { left, ..seen }, 0)
    }

    fn since(unit: &Unit, owed: u64, before: u64) -> u64 {
        let window = unit.window();
        let (now, before) = (window.counts(owed, 0), window.counts(before, 0));
        // With ticks longer than a nanosecond, rounding may move the end of the same window by a
        // tick.
        let rounded = u64::from(unit.layout.ns(1) > 1);
        let spent = if now.left.abs_diff(before.left) <= rounded {
            WindowCounts {
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

    /// The counts add up and last until the later end; a debt lasts up to two ticks longer.
    fn owing(unit: &Unit, now_ns: u64, state: u64, owed: u64) -> u64 {
        let (window, now) = (unit.window(), unit.ticks(now_ns));
        let (there, added) = (window.counts(state, now), window.counts(owed, 0));
        if added.left == 0 {
            return state;
        }
        // Rounds up, so that the debt does not end earlier than before.
        let begun = u64::from(unit.layout.ns(now) < now_ns);
        let both = WindowCounts {
            left: there.left.max(added.left + begun),
            count: there.count.saturating_add(added.count),
            previous: there.previous.saturating_add(added.previous),
        };
        window.state(&both, now)
    }
}

/// Implements [`unit`](super::rule::Ledger::unit).
#[cfg(not(target_arch = "bpf"))]
pub(super) const fn unit(parameters: &Parameters, cost: Cost) -> Unit {
    Unit::in_ns(parameters.window.period, parameters.window.layout, cost)
}

/// Implements [`refund`](super::rule::Ledger::refund).
#[cfg(not(target_arch = "bpf"))]
pub(super) const fn refund(parameters: &Parameters, now_ns: u64, cost: u64) -> Spend {
    Spend::of_window(
        &parameters.window,
        parameters.window.layout.ticks(now_ns),
        cost,
    )
}

/// Implements [`report`](super::rule::Ledger::report) for a bucket with `remaining` tokens and a
/// wait of `wait` ticks.
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
