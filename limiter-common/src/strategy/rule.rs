//! What every strategy answers, on the path of packets and off it.
//!
//! No function takes `self`: a bucket's state is one number, and what else there is to know comes
//! with a [`Budget`], a [`Spend`] or a [`Unit`]. `ask!` and `ask_state!` choose the type.

use super::{Budget, Decision, LargerThanBudget, Spend, Unit};
#[cfg(not(target_arch = "bpf"))]
use super::{Layout, Report, Terms, gcra::MAX_BURST_OFFSET, moving_window::Log};
#[cfg(not(target_arch = "bpf"))]
use crate::limit::Cost;

/// What a state is worth.
pub(crate) trait State {
    /// The state of a bucket that owes nothing at the time `now_ns`.
    fn full(unit: &Unit, now_ns: u64) -> u64;

    /// What the state of a bucket in the unit `from` is in the unit `to`, of the same strategy:
    /// the bucket owes what it did.
    fn exchange(from: &Unit, to: &Unit, now_ns: u64, state: u64) -> u64;

    /// How long until the bucket is full, in nanoseconds; 0 exactly when it is.
    fn until_full(unit: &Unit, now_ns: u64, state: u64) -> u64;

    /// What the bucket's owner gains if the bucket is forgotten, in nanoseconds; 0 exactly when it
    /// is full.
    fn weight(unit: &Unit, now_ns: u64, state: u64) -> u64;

    /// The state of a bucket that gets a refund, but no more than it owes: for people, and not for
    /// packets.
    fn refunded(spend: &Spend, state: u64) -> u64;
}

/// How a strategy decides on a packet.
pub(crate) trait Rule {
    /// Whether a bucket counts what it refuses.
    const COUNTS_REFUSALS: bool = false;

    /// Prepares to spend `cost` tokens at the time `now_ns`.
    fn spend(budget: &Budget, now_ns: u64, cost: u64) -> Result<Spend, LargerThanBudget>;

    /// Decides on a bucket in that state.
    fn decide(spend: &Spend, state: u64) -> Decision;

    /// The state of a bucket that gets back what a packet was charged.
    fn undo(spend: &Spend, state: u64) -> u64;
}

/// What a bucket owes, apart from the time: to be kept, and put back where the clock is another.
///
/// A debt is a state as it is at the time 0.
#[cfg(not(target_arch = "bpf"))]
pub(crate) trait Debt {
    /// What a bucket of that state owes at the time `now_ns`; 0: nothing, it is full.
    fn owed(unit: &Unit, now_ns: u64, state: u64) -> u64;

    /// How much of a debt is new, where `before` is left of an older one; 0: nothing.
    fn since(unit: &Unit, owed: u64, before: u64) -> u64;

    /// What adds a debt to whatever a bucket owes; `None`: only [`Self::owing`] does, which knows
    /// the state.
    fn adding(unit: &Unit, now_ns: u64, owed: u64) -> Option<Spend>;

    /// The state of a bucket that has `state` at the time `now_ns`, with a debt on top.
    fn owing(unit: &Unit, now_ns: u64, state: u64, owed: u64) -> u64;
}

/// What people and policies ask of a strategy.
#[cfg(not(target_arch = "bpf"))]
pub(crate) trait Ledger: Rule {
    /// Its name in configuration files and output.
    const NAME: &'static str;

    /// The most tokens that a limit may count in a period.
    const LARGEST_COUNT: u64;

    /// What follows on "at most [`Self::LARGEST_COUNT`] for this strategy": why, and what counts
    /// more.
    const ABOVE_LARGEST_COUNT: &'static str = "";

    /// The longest period, in nanoseconds.
    const LONGEST_PERIOD: u64 = MAX_BURST_OFFSET;

    /// Whether a limit has a burst besides its count: its buckets refill.
    const HAS_BURST: bool = false;

    /// Whether a bucket has a log of stamps.
    const HAS_LOG: bool = false;

    /// Why a limit cannot count bytes, and what can.
    const WHY_NO_BYTES: Option<&'static str> = None;

    /// The most tokens that pass in a period, its end not included, whatever the bucket holds
    /// when it begins.
    fn most_in_a_period(burst: u64, count: u64) -> u64;

    /// Whether a limit of these terms admits whatever one of the `other` terms does, where both
    /// are charged the same packets.
    fn admits_all_of(terms: &Terms, other: &Terms) -> bool;

    /// The budget of a limit; `None`: one of the terms is 0 or more than can be counted.
    fn budget(terms: &Terms) -> Option<Budget>;

    /// What the buckets of a limit count in.
    fn unit(budget: &Budget, cost: Cost) -> Unit;

    /// Whether states may have that layout.
    fn is_layout(layout: Layout) -> bool;

    /// Reports on a bucket in that state since a decision on `cost` tokens; the log is empty if
    /// there is none.
    fn report(budget: &Budget, now_ns: u64, state: u64, log: &Log, cost: u64) -> Report;

    /// What gives `cost` tokens back, by [`State::refunded`].
    fn refund(budget: &Budget, now_ns: u64, cost: u64) -> Spend;
}
