//! Fixed window: at most `count` tokens from the first packet on until a period later.
//!
//! As in the Python library `limits`: the first packet starts the window, a packet counts whether
//! it passes or not, and passes if with it the count is at most the limit's. What is refused does
//! not make the window longer.
//!
//! At worst 2 × count − 1 tokens pass in a period: all but the first token of a window at its end,
//! and all of the next one.

use super::{
    Decision, NEVER, Spend,
    window::{Seen, Window},
};

/// Decides on a bucket in that state.
#[must_use]
#[inline(always)]
pub(crate) const fn decide(spend: &Spend, state: u64) -> Decision {
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

/// How many tokens pass at once, at most.
pub(super) const fn remaining(window: &Window, state: u64, now: u64) -> u64 {
    window.count.saturating_sub(window.see(state, now).count)
}

/// The state of a bucket that gets it back: if the window is the same that has counted it, and has
/// not refused since.
#[must_use]
#[inline(always)]
pub(crate) const fn undo(spend: &Spend, state: u64) -> u64 {
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

#[cfg(test)]
mod tests;
