//! The traits of strategies, on the path of packets and off it.
//!
//! No function takes `self`: a bucket's state is one number, and a [`Parameters`], a [`Spend`] or a
//! [`Unit`] has the rest. `ask!` and `ask_state!` choose the type.

use super::{Decision, LargerThanBudget, Parameters, Spend, Unit};
#[cfg(not(target_arch = "bpf"))]
use super::{Layout, Report, Terms, gcra::MAX_BURST_OFFSET, moving_window::Log};
#[cfg(not(target_arch = "bpf"))]
use crate::limit::Cost;

/// What a state is worth.
pub(crate) trait State {
    /// Returns the state of a bucket that owes nothing at the time `now_ns`.
    fn full(unit: &Unit, now_ns: u64) -> u64;

    /// Converts the state of a bucket in the unit `from` to the unit `to` of the same strategy:
    /// the bucket owes as much as before.
    fn exchange(from: &Unit, to: &Unit, now_ns: u64, state: u64) -> u64;

    /// Returns how long it takes until the bucket is full, in nanoseconds; 0 exactly if it is full.
    fn until_full(unit: &Unit, now_ns: u64, state: u64) -> u64;

    /// Returns what the bucket's owner gains if the bucket is forgotten, in nanoseconds; 0 exactly
    /// if it is full.
    fn weight(unit: &Unit, now_ns: u64, state: u64) -> u64;

    /// Returns the state of a bucket after a refund of at most what it owes: for operators, not for
    /// packets.
    fn refunded(spend: &Spend, state: u64) -> u64;
}

/// How a strategy decides on a packet.
pub(crate) trait Rule {
    /// Whether a bucket has a log of stamps.
    const HAS_LOG: bool = false;

    /// Prepares to spend `cost` tokens at the time `now_ns`.
    fn spend(parameters: &Parameters, now_ns: u64, cost: u64) -> Result<Spend, LargerThanBudget>;

    /// Decides on a bucket in that state. A strategy that counts refused packets returns another
    /// state with a refusal too.
    fn decide(spend: &Spend, state: u64) -> Decision;

    /// Returns the state of a bucket that gets back what a packet was charged.
    fn undo(spend: &Spend, state: u64) -> u64;
}

/// What a bucket owes, independent of the clock, so that it can be saved and restored under
/// another.
///
/// A debt is a state at the time 0.
#[cfg(not(target_arch = "bpf"))]
pub(crate) trait Debt {
    /// Returns what a bucket in that state owes at the time `now_ns`; 0: nothing, it is full.
    fn owed(unit: &Unit, now_ns: u64, state: u64) -> u64;

    /// Returns how much of a debt is new if `before` is left of an older one; 0: nothing.
    fn since(unit: &Unit, owed: u64, before: u64) -> u64;

    /// Returns a spend that adds a debt to any bucket; `None`: only [`Self::owing`] can, which
    /// knows the state.
    fn adding(unit: &Unit, now_ns: u64, owed: u64) -> Option<Spend>;

    /// Returns the state of a bucket that has `state` at the time `now_ns`, with a debt added.
    fn owing(unit: &Unit, now_ns: u64, state: u64, owed: u64) -> u64;
}

/// What people and policies ask of a strategy.
#[cfg(not(target_arch = "bpf"))]
pub(crate) trait Ledger: Rule {
    /// The strategy's name in configuration files and output.
    const NAME: &'static str;

    /// The largest count of a limit.
    const LARGEST_COUNT: u64;

    /// The end of the message "at most [`Self::LARGEST_COUNT`] for this strategy": why, and which
    /// strategy counts more.
    const ABOVE_LARGEST_COUNT: &'static str = "";

    /// The longest period, in nanoseconds.
    const LONGEST_PERIOD: u64 = MAX_BURST_OFFSET;

    /// Whether a limit has a burst besides its count, because its buckets refill.
    const HAS_BURST: bool = false;

    /// Why a limit cannot count bytes, and which strategy can.
    const WHY_NO_BYTES: Option<&'static str> = None;

    /// Why a limit cannot reserve a part of its buckets for sources of a higher standing, and which
    /// strategy can; `None`: it can, by a [`Spend`] that leaves the reserve.
    const WHY_NO_RESERVE: Option<&'static str>;

    /// Why a limit cannot have an automatic rate, and which strategy can; `None`: it can, because a
    /// state means the same under every rate.
    const WHY_NO_AUTOMATIC: Option<&'static str> =
        Some("only for gcra: a window's count cannot move");

    /// Returns the maximum number of tokens that pass in a period, its end excluded, whatever the
    /// bucket holds when the period begins.
    fn most_in_a_period(burst: u64, count: u64) -> u64;

    /// Returns whether a limit of these terms admits every packet that one of the `other` terms
    /// admits, if both are charged the same packets.
    fn admits_all_of(terms: &Terms, other: &Terms) -> bool;

    /// Returns the parameters of a limit; `None`: one of the terms is 0 or more than can be
    /// counted.
    fn parameters(terms: &Terms) -> Option<Parameters>;

    /// Returns the unit of a limit's buckets.
    fn unit(parameters: &Parameters, cost: Cost) -> Unit;

    /// Returns whether states may have that layout.
    fn is_layout(layout: Layout) -> bool;

    /// Reports on a bucket in that state after a decision on `cost` tokens; the log is empty if the
    /// strategy has none.
    fn report(parameters: &Parameters, now_ns: u64, state: u64, log: &Log, cost: u64) -> Report;

    /// Returns what gives `cost` tokens back, by [`State::refunded`].
    fn refund(parameters: &Parameters, now_ns: u64, cost: u64) -> Spend;
}
