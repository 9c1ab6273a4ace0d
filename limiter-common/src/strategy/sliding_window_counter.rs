//! Sliding window counter: at most `count` tokens in the current window, a period long, plus the
//! previous window, weighted by the remaining share of the current one.
//!
//! As in the Python library `limits` with its Redis storage, the first packet starts the first
//! window, each window follows the one before at once, and after a whole window without a packet
//! the sequence starts anew. Refused packets are not counted. In integers, without the library's
//! rounding down: `previous × left + current × period + cost × period ≤ count × period`.
//!
//! At worst 2 × count − 2 tokens pass in a period (one if the count is 1): all but the first token
//! of a window at its end, and all but the last token of the next window, which pass while the
//! weight of the former falls.

use super::{
    Decision, LargerThanBudget, Parameters, Spend,
    rule::Rule,
    window::{Window, WindowCounts},
};
#[cfg(not(target_arch = "bpf"))]
use super::{Layout, NEVER, Report, Terms, Unit, moving_window::Log, rule::Ledger, window_state};
#[cfg(not(target_arch = "bpf"))]
use crate::limit::Cost;

pub(crate) enum SlidingWindowCounter {}

impl Rule for SlidingWindowCounter {
    #[inline(always)]
    fn spend(parameters: &Parameters, now_ns: u64, cost: u64) -> Result<Spend, LargerThanBudget> {
        if cost > parameters.window.count {
            return Err(LargerThanBudget);
        }
        let now = parameters.window.layout.ticks(now_ns);
        Ok(Spend::of_window(&parameters.window, now, cost))
    }

    /// The cost must be at most the limit's count.
    #[inline(always)]
    fn decide(spend: &Spend, state: u64) -> Decision {
        let (window, now, cost) = (&spend.window(), spend.now(), spend.cost());
        let mut seen = window.counts(state, now);
        if seen.left == 0 {
            seen.left = window.period;
        }
        let wait = wait(window, &seen, cost);
        if wait != 0 {
            return Decision::refuse(state, wait);
        }
        seen.count += cost;
        Decision::pass(window.state(&seen, now))
    }

    /// Gives back only if the current window is the one that counted the cost.
    #[inline(always)]
    fn undo(spend: &Spend, state: u64) -> u64 {
        let (window, now, cost) = (&spend.window(), spend.now(), spend.cost());
        let seen = window.counts(state, now);
        let left = window.layout.until_end(state, now);
        if left == 0 || left > window.period {
            return state;
        }
        let less = WindowCounts {
            count: seen.count.saturating_sub(cost),
            ..seen
        };
        window.state(&less, now)
    }
}

#[cfg(not(target_arch = "bpf"))]
/// Whether the state keeps the count of the previous window.
const KEEPS_PREVIOUS: bool = true;

#[cfg(not(target_arch = "bpf"))]
impl Ledger for SlidingWindowCounter {
    const NAME: &'static str = "sliding-window-counter";
    const LARGEST_COUNT: u64 = Layout::LARGEST_COUNT_WITH_PREVIOUS;
    const ABOVE_LARGEST_COUNT: &'static str = ": use fixed-window or gcra";
    const WHY_NO_RESERVE: Option<&'static str> =
        Some("how fast its tokens come back depends on the period before; use gcra");

    fn most_in_a_period(_burst: u64, count: u64) -> u64 {
        if count > 1 {
            (count - 1).saturating_mul(2)
        } else {
            count
        }
    }

    /// The counter looks back on two periods, and two counts of the other limit may fall into one
    /// of its own periods.
    fn admits_all_of(terms: &Terms, other: &Terms) -> bool {
        2 * u128::from(other.count) * terms.periods_of(other, 2) <= u128::from(terms.count)
    }

    fn parameters(terms: &Terms) -> Option<Parameters> {
        Window::new(super::Strategy::SlidingWindowCounter, KEEPS_PREVIOUS, terms)
            .map(Parameters::of_window)
    }

    fn unit(parameters: &Parameters, cost: Cost) -> Unit {
        window_state::unit(parameters, cost)
    }

    fn is_layout(layout: Layout) -> bool {
        layout.is_of_window(KEEPS_PREVIOUS)
    }

    fn report(parameters: &Parameters, now_ns: u64, state: u64, _log: &Log, cost: u64) -> Report {
        let (window, now) = (&parameters.window, parameters.window.layout.ticks(now_ns));
        let wait = if cost > window.count {
            NEVER
        } else {
            Self::decide(&Spend::of_window(window, now, cost), state).wait
        };
        window_state::report(window, state, now, remaining(window, state, now), wait)
    }

    fn refund(parameters: &Parameters, now_ns: u64, cost: u64) -> Spend {
        window_state::refund(parameters, now_ns, cost)
    }
}

/// The wait until `cost` tokens pass, if no other packet comes, in ticks; 0: now.
#[inline(always)]
const fn wait(window: &Window, seen: &WindowCounts, cost: u64) -> u64 {
    // If a window has begun by the clock of another CPU, the previous one counts in full.
    let left = if seen.left < window.period {
        seen.left
    } else {
        window.period
    };
    let counted = seen.count + cost;
    if counted <= window.count {
        let enough = enough_left(window, window.count - counted, seen.previous);
        left.saturating_sub(enough)
    } else {
        // In the next window, where this one is the previous.
        let rest = window.count.saturating_sub(cost);
        seen.left + (window.period - enough_left(window, rest, seen.count))
    }
}

/// The part of a window, in ticks, that must be left so that `previous` tokens in the previous one
/// leave `rest` tokens: `previous × left ≤ rest × period`.
#[inline(always)]
const fn enough_left(window: &Window, rest: u64, previous: u64) -> u64 {
    // The layout leaves room for the product.
    match (rest * window.period).checked_div(previous) {
        Some(left) if left < window.period => left,
        _ => window.period,
    }
}

/// The maximum number of tokens that pass at once.
#[cfg(not(target_arch = "bpf"))]
const fn remaining(window: &Window, state: u64, now: u64) -> u64 {
    let seen = window.counts(state, now);
    let left = if seen.left < window.period {
        seen.left
    } else {
        window.period
    };
    let weighted = match (seen.previous * left + (window.period - 1)).checked_div(window.period) {
        Some(weighted) => weighted,
        None => 0,
    };
    window
        .count
        .saturating_sub(seen.count)
        .saturating_sub(weighted)
}

#[cfg(test)]
mod tests;
