//! GCRA as a strategy: a state is a TAT in ticks, and a debt is a number of ticks.

use super::LargerThanBurst;
#[cfg(not(target_arch = "bpf"))]
use super::{Gcra, MAX_BURST_OFFSET};
use crate::strategy::{
    Decision, LargerThanBudget, Parameters, Spend, Unit,
    rule::{Rule, State},
};
#[cfg(not(target_arch = "bpf"))]
use crate::{
    limit::Cost,
    strategy::{
        Layout, NO_STATE, Report, Terms,
        moving_window::Log,
        rule::{Debt, Ledger},
    },
};

/// A state of GCRA: the theoretical arrival time, in ticks.
pub(crate) enum Tat {}

impl State for Tat {
    #[inline(always)]
    fn full(unit: &Unit, now_ns: u64) -> u64 {
        unit.ticks(now_ns)
    }

    /// The bucket owes as many tokens as before: whole tokens exactly, a fraction rounded up by at
    /// most two ticks and 2^-29 of a token. The debt is capped at
    /// [`MAX_BURST_OFFSET`](super::MAX_BURST_OFFSET).
    #[inline(always)]
    fn exchange(from: &Unit, to: &Unit, now_ns: u64, state: u64) -> u64 {
        let debt = state.saturating_sub(from.ticks(now_ns));
        to.ticks(now_ns)
            .saturating_add(super::exchange::worth(debt, from.interval, to.interval))
    }

    #[inline(always)]
    fn until_full(unit: &Unit, now_ns: u64, state: u64) -> u64 {
        let now = unit.ticks(now_ns);
        if state <= now {
            0
        } else {
            unit.ns_per_tick.scale(state - now).saturating_add(1)
        }
    }

    /// A bucket that owes less is full sooner.
    #[inline(always)]
    fn weight(unit: &Unit, now_ns: u64, state: u64) -> u64 {
        Self::until_full(unit, now_ns, state)
    }

    #[inline(always)]
    fn refunded(spend: &Spend, state: u64) -> u64 {
        let tat = spend.gcra().undo(state);
        if tat > spend.now() { tat } else { 0 }
    }
}

/// The generic cell rate algorithm.
pub(crate) enum GenericCellRate {}

impl Rule for GenericCellRate {
    #[inline(always)]
    fn spend(parameters: &Parameters, now_ns: u64, cost: u64) -> Result<Spend, LargerThanBudget> {
        let Parameters { gcra, .. } = parameters;
        match gcra.spend(gcra.ticks(now_ns), cost) {
            Ok(spend) => Ok(Spend::of_gcra(spend)),
            Err(LargerThanBurst) => Err(LargerThanBudget),
        }
    }

    #[inline(always)]
    fn decide(spend: &Spend, state: u64) -> Decision {
        spend.gcra().decide(state)
    }

    /// A bucket that has refilled in between is not overfilled.
    #[inline(always)]
    fn undo(spend: &Spend, state: u64) -> u64 {
        spend.gcra().undo(state)
    }
}

/// The stamps of a moving window are TATs too, but do not add up: the latest one counts.
#[cfg(not(target_arch = "bpf"))]
impl Debt for Tat {
    fn owed(unit: &Unit, now_ns: u64, state: u64) -> u64 {
        state.saturating_sub(unit.ticks(now_ns))
    }

    fn since(unit: &Unit, owed: u64, before: u64) -> u64 {
        if !unit.is_of_stamps() {
            owed.saturating_sub(before)
        } else if owed == before {
            0
        } else {
            owed
        }
    }

    fn adding(unit: &Unit, now_ns: u64, owed: u64) -> Option<Spend> {
        let adds_up = !unit.is_of_stamps();
        adds_up.then(|| Spend::unbounded(unit.ticks(now_ns), owed))
    }

    fn owing(unit: &Unit, now_ns: u64, state: u64, owed: u64) -> u64 {
        let now = unit.ticks(now_ns);
        let tat = if unit.is_of_stamps() {
            now.saturating_add(owed).max(state)
        } else {
            state.max(now).saturating_add(owed)
        };
        tat.min(NO_STATE - 1)
    }
}

#[cfg(not(target_arch = "bpf"))]
impl Ledger for GenericCellRate {
    const NAME: &'static str = "gcra";
    /// Only the rate of refilling bounds it.
    const LARGEST_COUNT: u64 = u64::MAX;
    const HAS_BURST: bool = true;
    const WHY_NO_RESERVE: Option<&'static str> = None;
    const WHY_NO_AUTOMATIC: Option<&'static str> = None;

    fn most_in_a_period(burst: u64, count: u64) -> u64 {
        burst.saturating_add(count)
    }

    /// The bucket must hold no less, and refill no slower.
    fn admits_all_of(terms: &Terms, other: &Terms) -> bool {
        let product = |count: u64, period_ns: u64| u128::from(count) * u128::from(period_ns);
        other.burst <= terms.burst
            && product(other.count, terms.period_ns) <= product(terms.count, other.period_ns)
    }

    fn parameters(terms: &Terms) -> Option<Parameters> {
        Gcra::new(terms.burst, terms.count, terms.period_ns).map(Parameters::of_gcra)
    }

    fn unit(parameters: &Parameters, cost: Cost) -> Unit {
        let Gcra {
            emission_interval,
            ticks_per_ns,
            ns_per_tick,
            ..
        } = parameters.gcra;
        Unit {
            interval: emission_interval,
            ticks_per_ns,
            ns_per_tick,
            ..Unit::in_ns(MAX_BURST_OFFSET, Layout::GCRA, cost)
        }
    }

    fn is_layout(layout: Layout) -> bool {
        layout.is_whole()
    }

    fn report(parameters: &Parameters, now_ns: u64, state: u64, _log: &Log, cost: u64) -> Report {
        let tat = Some(state).filter(|tat| *tat != 0);
        parameters
            .gcra
            .report(parameters.gcra.ticks(now_ns), tat, cost)
    }

    fn refund(parameters: &Parameters, now_ns: u64, cost: u64) -> Spend {
        let ticks = cost.saturating_mul(parameters.gcra.emission_interval);
        Spend::unbounded(parameters.gcra.ticks(now_ns), ticks)
    }
}
