//! Fixed window: at most `count` tokens in the period that the first packet starts.
//!
//! As in the Python library `limits`, the first packet starts the window; a packet counts whether
//! it passes or not, and passes if the count including it is at most the limit's. Refused packets
//! do not extend the window.
//!
//! At worst 2 × count − 1 tokens pass in a period: all but the first token of a window at its end,
//! and all tokens of the next window.

use super::{
    Decision, LargerThanBudget, NEVER, Parameters, Spend, rule::Rule, window::WindowCounts,
};
#[cfg(not(target_arch = "bpf"))]
use super::{Layout, Report, Terms, Unit, Window, moving_window::Log, rule::Ledger, window_state};
#[cfg(not(target_arch = "bpf"))]
use crate::limit::Cost;

pub(crate) enum FixedWindow {}

impl Rule for FixedWindow {
    /// Never fails: the window itself refuses and counts a cost above the limit.
    #[inline(always)]
    fn spend(parameters: &Parameters, now_ns: u64, cost: u64) -> Result<Spend, LargerThanBudget> {
        let now = parameters.window.layout.ticks(now_ns);
        Ok(Spend::of_window(&parameters.window, now, cost))
    }

    #[inline(always)]
    fn decide(spend: &Spend, state: u64) -> Decision {
        let (window, now, cost) = (&spend.window(), spend.now(), spend.cost());
        let mut seen = window.counts(state, now);
        if seen.left == 0 {
            seen.left = window.period;
        }
        let wait = if cost > window.count {
            NEVER
        } else {
            seen.left
        };
        // One more than the limit is enough to mark the window as having refused.
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

    /// Gives back only if the same window counted the cost and has not refused since.
    #[inline(always)]
    fn undo(spend: &Spend, state: u64) -> u64 {
        let (window, now, cost) = (&spend.window(), spend.now(), spend.cost());
        let seen = window.counts(state, now);
        if seen.left == 0 || seen.left > window.period || seen.count > window.count {
            return state;
        }
        let left = WindowCounts {
            count: seen.count.saturating_sub(cost),
            ..seen
        };
        window.state(&left, now)
    }
}

#[cfg(not(target_arch = "bpf"))]
/// Whether the state keeps the count of the previous window.
const KEEPS_PREVIOUS: bool = false;

#[cfg(not(target_arch = "bpf"))]
impl Ledger for FixedWindow {
    const NAME: &'static str = "fixed-window";
    const LARGEST_COUNT: u64 = Layout::LARGEST_COUNT;
    const WHY_NO_RESERVE: Option<&'static str> =
        Some("its count comes back only when the window ends, and so would the reserve; use gcra");

    fn most_in_a_period(_burst: u64, count: u64) -> u64 {
        count.saturating_mul(2).saturating_sub(1)
    }

    /// A window may begin in the middle of one of the other limit's windows.
    fn admits_all_of(terms: &Terms, other: &Terms) -> bool {
        u128::from(other.count) * (terms.periods_of(other, 1) + 1) <= u128::from(terms.count)
    }

    fn parameters(terms: &Terms) -> Option<Parameters> {
        Window::new(super::Strategy::FixedWindow, KEEPS_PREVIOUS, terms).map(Parameters::of_window)
    }

    fn unit(parameters: &Parameters, cost: Cost) -> Unit {
        window_state::unit(parameters, cost)
    }

    fn is_layout(layout: Layout) -> bool {
        layout.is_of_window(KEEPS_PREVIOUS)
    }

    fn report(parameters: &Parameters, now_ns: u64, state: u64, _log: &Log, cost: u64) -> Report {
        let (window, now) = (&parameters.window, parameters.window.layout.ticks(now_ns));
        let remaining = window.count.saturating_sub(window.counts(state, now).count);
        let wait = Self::decide(&Spend::of_window(window, now, cost), state).wait;
        window_state::report(window, state, now, remaining, wait)
    }

    fn refund(parameters: &Parameters, now_ns: u64, cost: u64) -> Spend {
        window_state::refund(parameters, now_ns, cost)
    }
}

#[cfg(test)]
mod tests;
