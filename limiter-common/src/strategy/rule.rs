//! The traits of strategies, on the path of packets and off it.
//!
//! No function takes `self`: a bucket's state is one number, and a [`Parameters`], a [`Spend`] or a
//! [`Unit`] has the rest. `dispatch!` and `dispatch_state!` choose the type.

use super::{Decision, LargerThanBudget, Parameters, Spend, Unit};
#[cfg(not(target_arch = "bpf"))]
use super::{Layout, Report, Terms, gcra::MAX_BURST_OFFSET, moving_window::Log};
#[cfg(not(target_arch = "bpf"))]
use crate::limit::Cost;

/// The worth of a strategy's states.
pub(crate) trait State {
    /// The state of a bucket without debt at the time `now_ns`.
    fn full(unit: &Unit, now_ns: u64) -> u64;

    /// Converts the state of a bucket in the unit `from` to the unit `to` of the same strategy. The
    /// debt stays the same.
    fn exchange(from: &Unit, to: &Unit, now_ns: u64, state: u64) -> u64;

    /// The time until the bucket is full, in nanoseconds; 0 exactly if it is full.
    fn until_full(unit: &Unit, now_ns: u64, state: u64) -> u64;

    /// The key's gain from evicting the bucket, in nanoseconds; 0 exactly if it is full.
    fn weight(unit: &Unit, now_ns: u64, state: u64) -> u64;

    /// The state of a bucket after a refund of at most its debt: for operators, not for packets.
    fn refunded(spend: &Spend, state: u64) -> u64;
}

/// The decision of a strategy on a packet.
pub(crate) trait Rule {
    /// Whether a bucket has a log of stamps.
    const HAS_LOG: bool = false;

    /// Prepares to spend `cost` tokens at the time `now_ns`.
    fn spend(parameters: &Parameters, now_ns: u64, cost: u64) -> Result<Spend, LargerThanBudget>;

    /// Decides on a bucket in this state. A strategy that counts refused packets changes the state
    /// with a refusal too.
    fn decide(spend: &Spend, state: u64) -> Decision;

    /// Takes back the charge of a packet; returns the bucket's new state.
    fn undo(spend: &Spend, state: u64) -> u64;
}

/// The debt of a bucket, independent of the clock, so that it can be saved and restored under
/// another clock.
///
/// A debt is a state at the time 0.
#[cfg(not(target_arch = "bpf"))]
pub(crate) trait Debt {
    /// The debt of a bucket in this state at the time `now_ns`; 0: it is full.
    fn owed(unit: &Unit, now_ns: u64, state: u64) -> u64;

    /// The new part of a debt, if `before` is the rest of an older one; 0: no part.
    fn since(unit: &Unit, owed: u64, before: u64) -> u64;

    /// A spend that adds a debt to any bucket; `None`: only [`Self::owing`] can, because it knows
    /// the state.
    fn adding(unit: &Unit, now_ns: u64, owed: u64) -> Option<Spend>;

    /// The state of a bucket that has `state` at the time `now_ns`, with a debt added.
    fn owing(unit: &Unit, now_ns: u64, state: u64, owed: u64) -> u64;
}

/// The interface of a strategy for policies and people.
#[cfg(not(target_arch = "bpf"))]
pub(crate) trait Ledger: Rule {
    /// The name in configuration files and output.
    const NAME: &'static str;

    /// The largest count of a limit.
    const LARGEST_COUNT: u64;

    /// The end of the message "at most [`Self::LARGEST_COUNT`] for this strategy": the reason, and
    /// a strategy that counts more.
    const ABOVE_LARGEST_COUNT: &'static str = "";

    /// The longest period, in nanoseconds.
    const LONGEST_PERIOD: u64 = MAX_BURST_OFFSET;

    /// Whether a limit has a burst besides its count, because its buckets refill.
    const HAS_BURST: bool = false;

    /// The reason why a limit cannot count bytes, and a strategy that can.
    const WHY_NO_BYTES: Option<&'static str> = None;

    /// The reason why a limit cannot reserve a part of its buckets for sources of a higher
    /// standing, and a strategy that can; `None`: it can, by a [`Spend`] that leaves the reserve.
    const WHY_NO_RESERVE: Option<&'static str>;

    /// The reason why a limit cannot have an automatic rate, and a strategy that can; `None`: it
    /// can, because a state means the same under every rate.
    const WHY_NO_AUTOMATIC: Option<&'static str> =
        Some("only for gcra: a window's count cannot move");

    /// The maximum number of tokens that pass in a period, its end excluded, for any level of the
    /// bucket at its start.
    fn most_in_a_period(burst: u64, count: u64) -> u64;

    /// Whether a limit of these terms admits every packet that a limit of the `other` terms admits,
    /// if both are charged the same packets.
    fn admits_all_of(terms: &Terms, other: &Terms) -> bool;

    /// The parameters of a limit; `None`: one of the terms is 0 or too large to be counted.
    fn parameters(terms: &Terms) -> Option<Parameters>;

    /// The unit of a limit's buckets.
    fn unit(parameters: &Parameters, cost: Cost) -> Unit;

    /// Whether states may have this layout.
    fn is_layout(layout: Layout) -> bool;

    /// Reports on a bucket in this state after a decision on `cost` tokens; the log is empty if the
    /// strategy has no log.
    fn report(parameters: &Parameters, now_ns: u64, state: u64, log: &Log, cost: u64) -> Report;

    /// The spend that gives `cost` tokens back, by [`State::refunded`].
    fn refund(parameters: &Parameters, now_ns: u64, cost: u64) -> Spend;
}
