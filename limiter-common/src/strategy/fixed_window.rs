//! Fixed window: at most `count` tokens from the first packet on until a period later.
//!
//! As in the Python library `limits`: the first packet starts the window, a packet counts whether
//! it passes or not, and passes if with it the count is at most the limit's. What is refused does
//! not make the window longer.
//!
//! At worst 2 × count − 1 tokens pass in a period: all but the first token of a window at its end,
//! and all of the next one.

use super::{Budget, Decision, LargerThanBudget, NEVER, Spend, rule::Rule, window::Seen};
#[cfg(not(target_arch = "bpf"))]
use super::{Layout, Report, Terms, Unit, Window, moving_window::Log, rule::Ledger, window};
#[cfg(not(target_arch = "bpf"))]
use crate::limit::Cost;

/// The fixed window.
pub(crate) enum FixedWindow {}

impl Rule for FixedWindow {
    const COUNTS_REFUSALS: bool = true;

    /// The window itself refuses more than it can ever let pass, and counts it.
    #[inline(always)]
    fn spend(budget: &Budget, now_ns: u64, cost: u64) -> Result<Spend, LargerThanBudget> {
        let now = budget.window.layout.ticks(now_ns);
        Ok(Spend::of_window(&budget.window, now, cost))
    }

    #[inline(always)]
    fn decide(spend: &Spend, state: u64) -> Decision {
        let (window, now, cost) = (&spend.window(), spend.now(), spend.cost());
        let mut seen = window.see(state, now);
        if seen.left == 0 {
            seen.left = window.period;
        }
        let wait = if cost > window.count {
            NEVER
        } else {
            seen.left
        };
        // One more than the limit is enough to know that the window has refused.
        let most = window.count + 1;
        let room = most.saturating_sub(seen.count);
        seen.count = if cost < room { seen.count + cost } else { most };
        let state = window.state(&seen, now);
        if seen.count <= window.count {
            Decision::pass(state)
        } else {
            Decision::refuse(state, wait)
        }
    }

    /// If the window is the same that has counted it, and has not refused since.
    #[inline(always)]
    fn undo(spend: &Spend, state: u64) -> u64 {
        let (window, now, cost) = (&spend.window(), spend.now(), spend.cost());
        let seen = window.see(state, now);
        if seen.left == 0 || seen.left > window.period || seen.count > window.count {
            return state;
        }
        let left = Seen {
            count: seen.count.saturating_sub(cost),
            ..seen
        };
        window.state(&left, now)
    }
}

#[cfg(not(target_arch = "bpf"))]
/// Whether it keeps what it counted in the bucket before.
const KEEPS_PREVIOUS: bool = false;

#[cfg(not(target_arch = "bpf"))]
impl Ledger for FixedWindow {
    const NAME: &'static str = "fixed-window";
    const LARGEST_COUNT: u64 = Layout::LARGEST_COUNT;

    fn most_in_a_period(_burst: u64, count: u64) -> u64 {
        count.saturating_mul(2).saturating_sub(1)
    }

    /// A window may begin in the midst of one of the other's.
    fn admits_all_of(terms: &Terms, other: &Terms) -> bool {
        u128::from(other.count) * (terms.periods_of(other, 1) + 1) <= u128::from(terms.count)
    }

    fn budget(terms: &Terms) -> Option<Budget> {
        Window::new(super::Strategy::FixedWindow, KEEPS_PREVIOUS, terms).map(Budget::of_window)
    }

    fn unit(budget: &Budget, cost: Cost) -> Unit {
        window::unit(budget, cost)
    }

    fn is_layout(layout: Layout) -> bool {
        layout.is_of_window(KEEPS_PREVIOUS)
    }

    fn report(budget: &Budget, now_ns: u64, state: u64, _log: &Log, cost: u64) -> Report {
        let (window, now) = (&budget.window, budget.window.layout.ticks(now_ns));
        let remaining = window.count.saturating_sub(window.see(state, now).count);
        let wait = Self::decide(&Spend::of_window(window, now, cost), state).wait;
        window::report(window, state, now, remaining, wait)
    }

    fn refund(budget: &Budget, now_ns: u64, cost: u64) -> Spend {
        window::refund(budget, now_ns, cost)
    }
}

#[cfg(test)]
mod tests;
