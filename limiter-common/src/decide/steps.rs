//! The steps of a decision that are separate functions in the kernel program.

use super::{
    Account, Charge, Intent, Plan, Scratch, account, log, passes_above_reserves,
    strictest::{NEVER, over},
};
use crate::{
    bucket::{BucketTable, Decide, Ending, Swap, Transition, UpdateOutcome},
    classified_packet::ClassifiedPacket,
    limit::MAX_LIMITS,
    policy::{Tables, interval_in_force, share_in_force},
    strategy::{self, Decision, LargerThanBudget, Parameters, Spend, gcra::bounded_increment},
};

/// The parts of a decision that are separate functions in the kernel program: the verifier walks
/// each once instead of once for each path that leads to it, and they do not use the stage's stack.
/// Native code uses the defaults.
pub trait DecisionSteps: BucketTable {
    /// Whether limits may have other strategies than GCRA. A pipeline without them is spared their
    /// cost.
    const WINDOWS: bool = true;

    /// Calls [`prepare`].
    #[inline(always)]
    fn prepare<T: Tables>(
        &self,
        tables: &T,
        scratch: &mut Scratch<Self::Location>,
        limit_index: u32,
        is_moving: bool,
    ) -> u64
    where
        Self: Sized,
    {
        prepare(self, tables, scratch, limit_index, is_moving)
    }

    /// Calls [`passes_above_reserves`].
    #[inline(always)]
    fn passes_above_reserves<T: Tables>(
        &self,
        tables: &T,
        scratch: &mut Scratch<Self::Location>,
        limits: u64,
    ) -> bool
    where
        Self: Sized,
    {
        passes_above_reserves(tables, scratch, limits)
    }

    /// Calls [`record_demand`].
    #[inline(always)]
    fn record_demand<T: Tables>(&self, tables: &T, packet: &ClassifiedPacket, limit_index: u32)
    where
        Self: Sized,
    {
        record_demand(tables, packet, limit_index);
    }

    /// Calls [`retry`].
    #[inline(always)]
    fn retry(&self, charge: &mut Charge<Self::Location>, intent: Intent) -> UpdateOutcome
    where
        Self: Sized,
    {
        retry(self, charge, intent)
    }

    /// Calls [`decide_again`].
    #[inline(always)]
    fn decide_again(
        &self,
        location: &Self::Location,
        plan: &mut Plan<Self::Location>,
        intent: Intent,
        state: u64,
    ) -> Transition
    where
        Self: Sized,
    {
        decide_again(self, location, plan, intent, state)
    }
}

/// Prepares the charge of the limit at an index, looks up its bucket, and decides on it. Returns
/// how strict a refusal is, as in [`super::strictest::StrictestRefusal`]. `is_moving`: whether the limit's
/// rate moves.
#[inline(always)]
pub fn prepare<T: Tables, B: DecisionSteps>(
    buckets: &B,
    tables: &T,
    scratch: &mut Scratch<B::Location>,
    limit_index: u32,
    is_moving: bool,
) -> u64 {
    let Scratch {
        packet,
        search,
        charges,
        ..
    } = scratch;
    let Charge { location, plan } = &mut charges[(limit_index % MAX_LIMITS) as usize];
    if B::WINDOWS {
        // A refusal without a bucket is not counted.
        plan.clear();
    }
    let Some(Account {
        key,
        parameters,
        cost,
    }) = account(tables, packet, limit_index)
    else {
        // The policy compiler rules this out. Deny, since the cost is unknown.
        return NEVER;
    };
    if B::WINDOWS {
        let Some(spend) = spend_all(packet, parameters.spend(packet.now, cost), parameters, cost)
        else {
            return NEVER;
        };
        plan.spend = spend;
        plan.stamp_unit = parameters.stamp_unit;
    } else {
        let spend = parameters.spend_gcra(packet.now, cost);
        let Some(spend) = spend_all(packet, spend, parameters, cost) else {
            return NEVER;
        };
        plan.spend.set_gcra(&spend.gcra());
    }
    plan.now_ns = packet.now;
    if is_moving && tables.features().is_shared(limit_index) {
        let share = share_in_force(tables, limit_index, &key, cost, packet.now);
        plan.spend.map_increment(|of_whole| share.cost(of_whole));
    } else if is_moving {
        let interval = interval_in_force(tables, limit_index, &parameters.gcra, packet.now);
        plan.spend
            .map_increment(|_| bounded_increment(interval, cost));
    }
    let seen = buckets.find(&key, parameters.unit, search, location);
    match plan.decide(buckets, location, seen).wait {
        0 => 0,
        strategy::NEVER => NEVER,
        // Looked up again, so that their address takes no stack through all of the above.
        ticks => match packet.parameters(tables, limit_index) {
            Some(parameters) => over(parameters.ns(ticks)),
            None => NEVER,
        },
    }
}

/// Returns the tokens that a packet spends, or `None` if it never passes. A superframe that costs
/// more than a full bucket passes if the bucket is full, which then owes the rest: its packets
/// could pass one by one.
#[inline(always)]
fn spend_all(
    packet: &ClassifiedPacket,
    spend: Result<Spend, LargerThanBudget>,
    parameters: &Parameters,
    cost: u64,
) -> Option<Spend> {
    match spend {
        Ok(spend) => Some(spend),
        Err(LargerThanBudget) if packet.facts.packets > 1 => {
            parameters.spend_owing(packet.now, cost)
        }
        Err(LargerThanBudget) => None,
    }
}

/// Records that the limit at an index, which gives shares to keys, refused the packet, if the
/// packet's key has no share of its own.
#[inline(always)]
pub fn record_demand<T: Tables>(tables: &T, packet: &ClassifiedPacket, limit_index: u32) {
    let Some(Account { key, .. }) = account(tables, packet, limit_index) else {
        return;
    };
    if tables.key_share(&key, 0, packet.now).is_none() {
        tables.record_demand(&key);
    }
}

impl<Location: Copy> Charge<Location> {
    /// Swaps the bucket's state from the one read to the decided one, if it is unchanged.
    #[inline(always)]
    pub(super) fn swap<B: DecisionSteps<Location = Location>>(&self, buckets: &B) -> Swap {
        let Self { location, plan } = self;
        if B::WINDOWS {
            match plan.stamp.ensure(buckets, plan.now_ns) {
                Swap::Stored => {}
                failed => return failed,
            }
        }
        buckets.swap(location, plan.now_ns, plan.seen, plan.next)
    }
}

impl<Location> Plan<Location> {
    #[inline(always)]
    pub(super) fn decide<B: DecisionSteps<Location = Location>>(
        &mut self,
        buckets: &B,
        location: &Location,
        state: u64,
    ) -> Decision {
        let Self {
            spend,
            stamp,
            stamp_unit,
            ..
        } = self;
        let decision = if B::WINDOWS {
            stamp.clear();
            if spend.strategy().has_log() {
                log::decide(buckets, location, spend, *stamp_unit, state, stamp)
            } else {
                spend.apply(state)
            }
        } else {
            spend.gcra().decide(state)
        };
        self.seen = state;
        self.next = decision.state;
        decision
    }

    /// Returns the bucket's state after a refund of the charge. A missing bucket owes nothing; a
    /// bucket exchanged in between looks missing too, and then owes too much.
    #[inline(always)]
    fn refunded<B: DecisionSteps<Location = Location>>(&self, state: u64) -> u64 {
        if state == 0 {
            return 0;
        }
        if !B::WINDOWS {
            return self.spend.gcra().undo(state);
        }
        if !self.spend.strategy().has_log() {
            self.spend.undo(state)
        } else if state == self.next {
            self.seen
        } else {
            // Only the last packet can be taken out: later ones have used the log.
            state
        }
    }
}

/// Decides again on the current state of a charge's bucket, and changes it, while other CPUs may
/// change it too. An earlier look-up has found the bucket.
#[inline(always)]
pub fn retry<B: DecisionSteps>(
    buckets: &B,
    charge: &mut Charge<B::Location>,
    intent: Intent,
) -> UpdateOutcome {
    let Charge { location, plan } = charge;
    let now_ns = plan.now_ns;
    let decide = &mut Retry {
        buckets,
        plan,
        intent,
    };
    buckets.update(location, now_ns, decide)
}

/// Forwards a table's calls to [`DecisionSteps::decide_again`].
struct Retry<'a, B: DecisionSteps> {
    buckets: &'a B,
    plan: &'a mut Plan<B::Location>,
    intent: Intent,
}

impl<B: DecisionSteps> Decide<B::Location> for Retry<'_, B> {
    #[inline(always)]
    fn decide(&mut self, location: &B::Location, state: u64) -> Transition {
        let Self {
            buckets,
            plan,
            intent,
        } = self;
        let decided = buckets.decide_again(location, plan, *intent, state);
        if !B::WINDOWS || decided.ending != Ending::Stored {
            return decided;
        }
        let ending = match plan.stamp.ensure(*buckets, plan.now_ns) {
            Swap::Stored => return decided,
            Swap::Changed | Swap::Misplaced => Ending::Again,
            Swap::Unavailable => Ending::Unavailable,
            Swap::Untracked => Ending::Untracked,
        };
        Transition::leave(state, ending)
    }
}

/// Decides again on the bucket of a plan, from its current state.
#[inline(always)]
pub fn decide_again<B: DecisionSteps>(
    buckets: &B,
    location: &B::Location,
    plan: &mut Plan<B::Location>,
    intent: Intent,
    state: u64,
) -> Transition {
    if intent == Intent::Refund {
        return Transition {
            state: plan.refunded::<B>(state),
            ending: Ending::GivenBack,
        };
    }
    let decision = plan.decide(buckets, location, state);
    Transition {
        state: decision.state,
        // To count a refusal, a strategy changes the state as for a packet that passes.
        ending: if decision.passes() && intent == Intent::Spend {
            Ending::Stored
        } else {
            Ending::Declined
        },
    }
}
