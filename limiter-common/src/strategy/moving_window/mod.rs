//! Moving window: at most `count` packets in any period, by a log of when the last ones passed.
//!
//! As in the Python library `limits`: a packet is refused if the `count`-th last one that passed
//! is younger than the period. What is refused leaves no trace.
//!
//! # The log
//!
//! A state is a cursor: the number of the next stamp of the log, of [`STAMPS`] that are used in
//! turn, and the TAT of the last packet that passed, which is when its window ends. The TATs of
//! those before it are in stamps: buckets of their own, each a word that only ever grows.
//!
//! To let a packet pass takes three steps: stamp the last packet's TAT behind the cursor, if it is
//! not there yet; read the stamp of the `count`-th last one, which must have passed; and move the
//! cursor by compare-and-swap. That last step is the one moment at which it is decided:
//!
//! * Whoever moves the cursor has seen the stamp it is decided by while the cursor stood where it
//!   was moved from. A stamp is overwritten only [`STAMPS`] packets later, by when the cursor has
//!   moved; and a cursor never comes back to the same place with the same TAT: the last of the
//!   [`STAMPS`] packets in between has passed when the window of the first had ended.
//! * Whoever moves the cursor on has made sure before that the packet it leaves behind is
//!   stamped. So of all packets but the last one the TAT is in the log.
//! * A stamp that somebody writes late is older than what has replaced it, and changes nothing.
//! * TATs never go back, whatever the clocks of the CPUs say: a packet that is behind the last one
//!   gets the TAT of that. So when the last one's has passed by any clock, all have, and only then is
//!   the log not looked at and not gone on with.
//!
//! So every packet is decided on as if all came one after the other, in the order in which the
//! cursor moved: never one too many and, but for refunds and lost races, never one too few. How
//! many packets a limit counts is no part of the state, so it may change from one to the next.

use super::{
    Budget, Decision, LargerThanBudget, NEVER, Spend, Unit,
    rule::{Rule, State},
};
#[cfg(not(target_arch = "bpf"))]
mod log;

#[cfg(not(target_arch = "bpf"))]
pub use self::log::Log;
#[cfg(not(target_arch = "bpf"))]
use super::{
    Layout, Report, Terms,
    rule::{Debt, Ledger},
    window,
};
#[cfg(not(target_arch = "bpf"))]
use crate::limit::Cost;

/// How many stamps a log has, and so how many packets a limit may count.
pub const STAMPS: u64 = 128;

/// The longest period, in nanoseconds: 417 days.
pub const MAX_PERIOD: u64 = 1 << 55;

/// How far the times of two packets are apart at most that come one after the other by the cursor,
/// in nanoseconds: the clock of one CPU may be behind, or a CPU be held up once it has read it.
pub(crate) const MOST_BEHIND: u64 = 1 << 30;

const NUMBER_BITS: u32 = STAMPS.trailing_zeros();

/// Where a log stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cursor {
    /// The number of the next stamp, below [`STAMPS`].
    pub next: u64,
    /// The TAT of the last packet that passed, in nanoseconds; 0: there is none, or it has passed
    /// for longer than clocks are apart.
    pub last: u64,
}

impl Cursor {
    /// What a state says at the time `now`, in nanoseconds.
    ///
    /// Of the TAT 57 bits are kept: one that has passed for over two years could be mistaken for
    /// one to come, in longer than any period.
    #[must_use]
    #[inline(always)]
    pub const fn of_state(state: u64, now: u64) -> Self {
        let next = state & (STAMPS - 1);
        let since = now.wrapping_sub(MOST_BEHIND);
        let since = (state >> NUMBER_BITS).wrapping_sub(since) << NUMBER_BITS >> NUMBER_BITS;
        Self {
            next,
            last: if state != 0 && since <= 2 * MAX_PERIOD + MOST_BEHIND {
                now.saturating_add(since).saturating_sub(MOST_BEHIND)
            } else {
                0
            },
        }
    }

    /// The state that says so; a nanosecond later in place of [`super::NO_STATE`], and of that
    /// of a full bucket.
    #[must_use]
    #[inline(always)]
    pub const fn state(self) -> u64 {
        match self.last << NUMBER_BITS | self.next {
            u64::MAX => self.next,
            0 if self.last != 0 => 1 << NUMBER_BITS,
            state => state,
        }
    }

    /// Where the log stands without the `count` packets that passed last; at its beginning, if by the
    /// time `now`, in nanoseconds, none of the others counts.
    #[cfg(not(target_arch = "bpf"))]
    #[must_use]
    pub fn without_last(self, count: u64, log: &Log, now: u64) -> Self {
        let last = if count < STAMPS {
            log.nth_last(self, count + 1)
        } else {
            0
        };
        if last > now {
            let next = self.stamp(count);
            Self { next, last }
        } else {
            Self { next: 0, last: 0 }
        }
    }

    /// The number of the stamp of the packet that passed as the `nth` last, up to [`STAMPS`]; the
    /// last one is the first last.
    #[must_use]
    #[inline(always)]
    pub const fn stamp(self, nth: u64) -> u64 {
        self.next.wrapping_sub(nth) & (STAMPS - 1)
    }
}

/// Decides on a bucket in that state, of which the `count`-th last packet has the TAT `oldest`, in
/// nanoseconds.
#[must_use]
#[inline(always)]
pub(crate) const fn decide(spend: &Spend, state: u64, cursor: Cursor, oldest: u64) -> Decision {
    let (now, period) = (spend.now(), spend.window().period);
    if oldest > now {
        return Decision::refuse(state, oldest - now);
    }
    let tat = now.saturating_add(period);
    let behind = cursor.last.saturating_sub(tat);
    let moved = Cursor {
        next: (cursor.next + 1) & (STAMPS - 1),
        // Further behind, the last one has passed under a longer period.
        last: if behind <= MOST_BEHIND {
            tat + behind
        } else {
            tat
        },
    };
    Decision::pass(moved.state())
}

/// A state is a cursor, in any unit; and a debt is one with the time that is left in place of the
/// end.
impl State for Cursor {
    #[inline(always)]
    fn full(_: &Unit, _: u64) -> u64 {
        0
    }

    #[inline(always)]
    fn exchange(_from: &Unit, _to: &Unit, _now_ns: u64, state: u64) -> u64 {
        state
    }

    #[inline(always)]
    fn until_full(_unit: &Unit, now_ns: u64, state: u64) -> u64 {
        Cursor::of_state(state, now_ns).last.saturating_sub(now_ns)
    }

    #[inline(always)]
    fn weight(unit: &Unit, now_ns: u64, state: u64) -> u64 {
        Self::until_full(unit, now_ns, state)
    }

    /// [`Cursor::without_last`] gives packets back.
    #[inline(always)]
    fn refunded(_: &Spend, state: u64) -> u64 {
        state
    }
}

/// The moving window. A decision takes the log besides the state: [`decide`] makes it.
pub(crate) enum MovingWindow {}

impl Rule for MovingWindow {
    #[inline(always)]
    fn spend(budget: &Budget, now_ns: u64, cost: u64) -> Result<Spend, LargerThanBudget> {
        if cost > budget.window.count {
            return Err(LargerThanBudget);
        }
        Ok(Spend::of_window(&budget.window, now_ns, cost))
    }

    #[inline(always)]
    fn decide(_: &Spend, state: u64) -> Decision {
        Decision::refuse(state, NEVER)
    }

    #[inline(always)]
    fn undo(_: &Spend, state: u64) -> u64 {
        state
    }
}

/// The later cursor is all there is to know: they do not add up.
#[cfg(not(target_arch = "bpf"))]
impl Debt for Cursor {
    fn owed(_: &Unit, now_ns: u64, state: u64) -> u64 {
        let cursor = Cursor::of_state(state, now_ns);
        match cursor.last.saturating_sub(now_ns) {
            0 => 0,
            last => Cursor { last, ..cursor }.state(),
        }
    }

    fn since(_: &Unit, owed: u64, before: u64) -> u64 {
        if owed == before { 0 } else { owed }
    }

    fn adding(_: &Unit, _: u64, _: u64) -> Option<Spend> {
        None
    }

    fn owing(_: &Unit, now_ns: u64, state: u64, owed: u64) -> u64 {
        let (there, added) = (Cursor::of_state(state, now_ns), Cursor::of_state(owed, 0));
        let added = Cursor {
            last: now_ns.saturating_add(added.last),
            ..added
        };
        if added.last > there.last.max(now_ns) {
            added.state()
        } else {
            state
        }
    }
}

#[cfg(not(target_arch = "bpf"))]
impl Ledger for MovingWindow {
    const NAME: &'static str = "moving-window";
    const LARGEST_COUNT: u64 = STAMPS;
    const ABOVE_LARGEST_COUNT: &'static str =
        ", which keeps when each came: use sliding-window-counter or gcra";
    const LONGEST_PERIOD: u64 = MAX_PERIOD;
    const HAS_LOG: bool = true;
    const WHY_NO_BYTES: Option<&'static str> = Some(
        "it keeps when each packet came, and not how long it was; use sliding-window-counter or gcra",
    );

    fn most_in_a_period(_burst: u64, count: u64) -> u64 {
        count
    }

    fn admits_all_of(terms: &Terms, other: &Terms) -> bool {
        u128::from(other.count) * terms.periods_of(other, 1) <= u128::from(terms.count)
    }

    fn budget(terms: &Terms) -> Option<Budget> {
        let Terms {
            count, period_ns, ..
        } = *terms;
        let fits = (1..=STAMPS).contains(&count) && (1..=MAX_PERIOD).contains(&period_ns);
        fits.then(|| {
            Budget::of_window(window::Window {
                count,
                period: period_ns,
                layout: Layout::whole(super::Strategy::MovingWindow),
                reserved: 0,
            })
        })
    }

    fn unit(budget: &Budget, cost: Cost) -> Unit {
        Unit::in_ns(1, budget.window.layout, cost)
    }

    fn is_layout(layout: Layout) -> bool {
        layout.is_whole()
    }

    fn report(budget: &Budget, now_ns: u64, state: u64, log: &Log, cost: u64) -> Report {
        let count = budget.window.count;
        let cursor = Cursor::of_state(state, now_ns);
        // Those before may have passed under a longer period; they count no longer than the last
        // one.
        let tat = |nth| log.nth_last(cursor, nth).min(cursor.last);
        let counted = (1..=count).filter(|nth| tat(*nth) > now_ns);
        Report {
            remaining: count - counted.count() as u64,
            retry_in_ns: (cost <= 1).then(|| tat(count).saturating_sub(now_ns)),
            reset_in_ns: cursor.last.saturating_sub(now_ns),
        }
    }

    /// [`Cursor::without_last`] gives packets back, and no spend does.
    fn refund(budget: &Budget, now_ns: u64, cost: u64) -> Spend {
        window::refund(budget, now_ns, cost)
    }
}

#[cfg(test)]
mod tests;
