//! Moving window: at most `count` packets in any period, by a log of the times at which the last
//! ones passed.
//!
//! As in the Python library `limits`, a packet is refused if the `count`-th last passed packet is
//! younger than the period. Refused packets leave no trace.
//!
//! # The log
//!
//! A state is a cursor: the number of the log's next stamp, out of [`STAMPS`] used in turn, and the
//! TAT of the last passed packet, which is the end of its window. The TATs of earlier packets are
//! in stamps: separate buckets, each a word that only ever grows.
//!
//! A packet passes in three steps: stamp the last packet's TAT behind the cursor, if it is not
//! there yet; read the stamp of the `count`-th last packet, which must have passed; and move the
//! cursor by compare-and-swap. The last step is the single moment of the decision:
//!
//! * A CPU that moves the cursor has read the stamp for its decision while the cursor was at the
//!   old position. A stamp is overwritten only [`STAMPS`] packets later, when the cursor has moved;
//!   and a cursor never returns to the same position with the same TAT: the last of the [`STAMPS`]
//!   packets in between passed after the window of the first had ended.
//! * A CPU that moves the cursor has first ensured that the packet it passes over is stamped. So
//!   the log has the TATs of all packets but the last one.
//! * A stamp that is written late is older than its replacement, and changes nothing.
//! * TATs never go back, even if the clocks of CPUs differ: a packet that is behind the last one
//!   gets the last one's TAT. So when the last TAT has passed by every clock, all have; only then
//!   is the log neither read nor continued.
//!
//! So decisions are as if all packets came one after the other, in the order of the cursor's moves:
//! never one too many and, except for refunds and lost races, never one too few. The limit's count
//! is not part of the state, so it may change from one packet to the next.

mod log;

#[cfg(not(target_arch = "bpf"))]
pub use self::log::Log;
pub use self::log::STAMPS;
use super::{
    Decision, LargerThanBudget, NEVER, Parameters, Spend, Unit,
    rule::{Rule, State},
};
#[cfg(not(target_arch = "bpf"))]
use super::{
    Layout, Report, Terms, Window,
    rule::{Debt, Ledger},
    window_state,
};
#[cfg(not(target_arch = "bpf"))]
use crate::limit::Cost;

/// The longest period, in nanoseconds: 417 days.
pub const MAX_PERIOD: u64 = 1 << 55;

/// The maximum difference between the times of two packets that are consecutive by the cursor, in
/// nanoseconds: one CPU's clock may be behind, or a CPU may be delayed after it has read the clock.
pub(crate) const MOST_BEHIND: u64 = 1 << 30;

const NUMBER_BITS: u32 = STAMPS.trailing_zeros();

/// The current position in a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cursor {
    /// The number of the next stamp, below [`STAMPS`].
    pub next: u64,
    /// The TAT of the last passed packet, in nanoseconds; 0: no packet, or its TAT has passed by
    /// more than the clocks' difference.
    pub last: u64,
}

impl Cursor {
    /// The cursor of a state at the time `now`, in nanoseconds.
    ///
    /// The state has 57 bits of the TAT: a TAT that passed over two years ago could be mistaken for
    /// a future one, further ahead than any period.
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

    /// The cursor's state; a nanosecond later instead of [`super::NO_STATE`] or the state of a full
    /// bucket.
    #[must_use]
    #[inline(always)]
    pub const fn state(self) -> u64 {
        match self.last << NUMBER_BITS | self.next {
            u64::MAX => self.next,
            0 if self.last != 0 => 1 << NUMBER_BITS,
            state => state,
        }
    }

    /// The cursor without the last `count` passed packets; at the beginning of the log if all
    /// others have expired at the time `now`, in nanoseconds.
    #[cfg(not(target_arch = "bpf"))]
    #[must_use]
    pub fn without_last(self, count: u64, log: &Log, now: u64) -> Self {
        let last = if count < STAMPS {
            self.nth_last(count + 1, log)
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

    /// The TAT of the `nth` last passed packet.
    #[cfg(not(target_arch = "bpf"))]
    fn nth_last(self, nth: u64, log: &Log) -> u64 {
        if nth == 1 {
            self.last
        } else {
            log.stamp(self.stamp(nth))
        }
    }

    /// The number of the stamp of the `nth` last passed packet, up to [`STAMPS`]; the last one has
    /// `nth` 1.
    #[must_use]
    #[inline(always)]
    pub const fn stamp(self, nth: u64) -> u64 {
        self.next.wrapping_sub(nth) & (STAMPS - 1)
    }
}

/// Decides on a bucket in `state`; `oldest` is the TAT of its `count`-th last packet, in
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
        // If it is further behind, the last packet passed under a longer period.
        last: if behind <= MOST_BEHIND {
            tat + behind
        } else {
            tat
        },
    };
    Decision::pass(moved.state())
}

/// A state is a cursor, in any unit; a debt is a cursor with the remaining time in place of the
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

    /// No change: [`Cursor::without_last`] gives packets back.
    #[inline(always)]
    fn refunded(_: &Spend, state: u64) -> u64 {
        state
    }
}

/// The moving window. A decision needs the log besides the state: [`decide`] makes it.
pub(crate) enum MovingWindow {}

impl Rule for MovingWindow {
    const HAS_LOG: bool = true;

    #[inline(always)]
    fn spend(parameters: &Parameters, now_ns: u64, cost: u64) -> Result<Spend, LargerThanBudget> {
        if cost > parameters.window.count {
            return Err(LargerThanBudget);
        }
        Ok(Spend::of_window(&parameters.window, now_ns, cost))
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

/// Debts do not add up: the later cursor counts.
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
    const WHY_NO_BYTES: Option<&'static str> = Some(
        "it keeps when each packet came, and not how long it was; use sliding-window-counter or gcra",
    );
    const WHY_NO_RESERVE: Option<&'static str> =
        Some("its tokens come back in the bursts in which they were taken; use gcra");

    fn most_in_a_period(_burst: u64, count: u64) -> u64 {
        count
    }

    fn admits_all_of(terms: &Terms, other: &Terms) -> bool {
        u128::from(other.count) * terms.periods_of(other, 1) <= u128::from(terms.count)
    }

    fn parameters(terms: &Terms) -> Option<Parameters> {
        let Terms {
            count, period_ns, ..
        } = *terms;
        let fits = (1..=STAMPS).contains(&count) && (1..=MAX_PERIOD).contains(&period_ns);
        fits.then(|| {
            Parameters::of_window(Window {
                count,
                period: period_ns,
                layout: Layout::whole(super::Strategy::MovingWindow),
                reserved: 0,
            })
        })
    }

    fn unit(parameters: &Parameters, cost: Cost) -> Unit {
        Unit::in_ns(1, parameters.window.layout, cost)
    }

    fn is_layout(layout: Layout) -> bool {
        layout.is_whole()
    }

    fn report(parameters: &Parameters, now_ns: u64, state: u64, log: &Log, cost: u64) -> Report {
        let count = parameters.window.count;
        let cursor = Cursor::of_state(state, now_ns);
        // Earlier packets may have passed under a longer period; they expire with the last packet
        // at the latest.
        let tat = |nth| cursor.nth_last(nth, log).min(cursor.last);
        let counted = (1..=count).filter(|nth| tat(*nth) > now_ns);
        Report {
            remaining: count - counted.count() as u64,
            retry_in_ns: (cost <= 1).then(|| tat(count).saturating_sub(now_ns)),
            reset_in_ns: cursor.last.saturating_sub(now_ns),
        }
    }

    /// [`Cursor::without_last`] gives packets back; the spend only carries the cost.
    fn refund(parameters: &Parameters, now_ns: u64, cost: u64) -> Spend {
        window_state::refund(parameters, now_ns, cost)
    }
}

#[cfg(test)]
mod tests;
