//! Sliding window counter: at most `count` tokens in the current bucket of a period and, by the
//! share of the period that is left of it, the one before.
//!
//! As in the Python library `limits` with its Redis storage: the first packet starts the first
//! bucket, the next one follows at once, and after a whole bucket without a packet it begins anew.
//! What is refused is not counted. In integers, without the library's rounding down:
//! `previous × left + current × period + cost × period ≤ count × period`.
//!
//! At worst 2 × count − 2 tokens pass in a period, or the one that there is: all but the first token
//! of a bucket at its end, and in the next one all but the last, which are let in while the weight of
//! that falls.

use super::{
    Decision, Spend,
    window::{Seen, Window},
};

/// Decides on a bucket in that state; the cost is the limit's count at most.
#[must_use]
#[inline(always)]
pub(crate) const fn decide(spend: &Spend, state: u64) -> Decision {
    let (window, now, cost) = (&spend.window(), spend.now(), spend.cost());
    let mut seen = window.see(state, now);
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

/// How long until `cost` tokens pass, if nothing else comes, in ticks; 0: they do now.
#[inline(always)]
const fn wait(window: &Window, seen: &Seen, cost: u64) -> u64 {
    // Of a bucket that has begun by the clock of another CPU, the one before counts in full.
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
        // In the next one, of which this is the one before.
        let rest = window.count.saturating_sub(cost);
        seen.left + (window.period - enough_left(window, rest, seen.count))
    }
}

/// With how much of a bucket left, in ticks, `previous` tokens in the one before leave `rest`
/// tokens: `previous × left ≤ rest × period`.
#[inline(always)]
const fn enough_left(window: &Window, rest: u64, previous: u64) -> u64 {
    // The layout leaves room for the product.
    match (rest * window.period).checked_div(previous) {
        Some(left) if left < window.period => left,
        _ => window.period,
    }
}

/// How many tokens pass at once, at most.
pub(super) const fn remaining(window: &Window, state: u64, now: u64) -> u64 {
    let seen = window.see(state, now);
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

/// The state of a bucket that gets it back: if the bucket of time is the same that has counted it.
#[must_use]
#[inline(always)]
pub(crate) const fn undo(spend: &Spend, state: u64) -> u64 {
    let (window, now, cost) = (&spend.window(), spend.now(), spend.cost());
    let seen = window.see(state, now);
    let left = window.layout.until_end(state, now);
    if left == 0 || left > window.period {
        return state;
    }
    let less = Seen {
        count: seen.count.saturating_sub(cost),
        ..seen
    };
    window.state(&less, now)
}

#[cfg(test)]
mod tests;
