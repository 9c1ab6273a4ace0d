//! The charge of one limit for one packet, and how it changes the bucket.

use super::{
    Outline,
    log::{self, Stamp},
};
use crate::{
    bucket::{Decide, Decided, Ending, Swap, Updated},
    numbered::numbered,
    strategy::{Decision, Spend, Strategy},
};

/// The charge of one limit for one packet: which bucket to change, and how.
///
/// It consists of plain numbers, because it is in the workspace.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct Charge<Location> {
    /// The store's handle of the bucket.
    pub(super) location: Location,
    /// How to change it.
    pub(super) plan: Plan<Location>,
}

/// How to change a bucket.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Plan<Location> {
    /// What the packet spends.
    pub(super) spend: Spend,
    /// The bucket's state that the last decision was on.
    seen: u64,
    /// The bucket's next state by that decision.
    next: u64,
    /// What the packet must leave in the bucket, in ticks; only for limits that reserve.
    pub(super) reserve: u64,
    /// When the packet arrived, in nanoseconds.
    pub(super) now_ns: u64,
    /// The number of the unit that the stamps of a moving window count in.
    pub(super) stamp_unit: u32,
    /// The number of a decision's [`Ending`], for functions that hand a decision over.
    pub ending: u32,
    /// What a moving window must have stamped before it gets the next state.
    stamp: Stamp<Location>,
}

impl<Location: Default> Default for Plan<Location> {
    /// Returns a plan that changes nothing.
    fn default() -> Self {
        Self {
            spend: Spend::NONE,
            seen: 0,
            next: 0,
            reserve: 0,
            now_ns: 0,
            stamp_unit: 0,
            ending: 0,
            stamp: Stamp::default(),
        }
    }
}

numbered! {
    /// What a charge does to its bucket.
    pub enum Intent {
        /// Takes tokens, if the bucket has them.
        Spend,
        /// Counts that the bucket has refused them, if its strategy counts refusals.
        Refuse,
        /// Gives them back.
        Refund,
    } else Spend
}

impl<Location: Copy> Charge<Location> {
    /// Replaces the state that was seen by the one that was decided on, if the bucket is still in
    /// it.
    #[inline(always)]
    pub(super) fn swap<O: Outline<Location = Location>>(&self, buckets: &O) -> Swap {
        let Self { location, plan } = self;
        if O::WINDOWS {
            match plan.stamp.ensure(buckets, plan.now_ns) {
                Swap::Stored => {}
                failed => return failed,
            }
        }
        buckets.swap(location, plan.now_ns, plan.seen, plan.next)
    }
}

impl<Location> Plan<Location> {
    /// Makes this a plan that leaves the bucket as it is.
    #[inline(always)]
    pub(super) const fn clear(&mut self) {
        // Not both set to 0: in BPF that would be a call to a loop over bytes.
        self.next = self.seen;
    }

    /// Returns whether the decision gives the bucket another state.
    #[inline(always)]
    pub(super) const fn changes(&self) -> bool {
        self.seen != self.next
    }

    /// Makes the packet, which the decision lets pass, leave the reserve; returns whether it still
    /// passes. The limit must reserve, and so be of GCRA, whose states are TATs.
    #[inline(always)]
    pub(super) const fn leave_reserve(&mut self) -> bool {
        self.spend = self.spend.leaving(self.reserve);
        self.next <= self.spend.gcra().latest
    }

    /// Returns whether the packet, which the last decision refused, would have passed without the
    /// reserve: the reserve makes the latest allowed TAT earlier, and so the wait longer.
    #[inline(always)]
    pub(super) const fn is_refused_for_reserve(&self) -> bool {
        self.spend.gcra().decide(self.seen).wait <= self.reserve
    }

    /// Decides on the bucket in that state.
    #[inline(always)]
    pub(super) fn decide<O: Outline<Location = Location>>(
        &mut self,
        buckets: &O,
        location: &Location,
        state: u64,
    ) -> Decision {
        let Self {
            spend,
            stamp,
            stamp_unit,
            ..
        } = self;
        let decision = if O::WINDOWS {
            stamp.clear();
            match spend.strategy() {
                Strategy::MovingWindow => {
                    log::decide(buckets, location, spend, *stamp_unit, state, stamp)
                }
                _ => spend.apply(state),
            }
        } else {
            spend.gcra().decide(state)
        };
        self.seen = state;
        self.next = decision.state;
        decision
    }

    /// Returns the bucket's state after the charge is refunded. A missing bucket owes nothing; one
    /// that was exchanged in between looks missing too, and then owes too much.
    #[inline(always)]
    fn refunded<O: Outline<Location = Location>>(&self, state: u64) -> u64 {
        if state == 0 {
            return 0;
        }
        if !O::WINDOWS {
            return self.spend.gcra().undo(state);
        }
        match self.spend.strategy() {
            // Only the last packet can be taken out: later ones have used the log.
            Strategy::MovingWindow if state == self.next => self.seen,
            Strategy::MovingWindow => state,
            _ => self.spend.undo(state),
        }
    }
}

/// Decides again on the bucket of a charge, by its current state, and changes it, while other CPUs
/// may change it too. The bucket was looked for before.
#[inline(always)]
pub fn retry<O: Outline>(buckets: &O, charge: &mut Charge<O::Location>, intent: Intent) -> Updated {
    let Charge { location, plan } = charge;
    let now_ns = plan.now_ns;
    let decide = &mut Retry {
        buckets,
        plan,
        intent,
    };
    buckets.update(location, now_ns, decide)
}

/// Passes a store's questions on to [`Outline::decide_again`].
struct Retry<'a, O: Outline> {
    buckets: &'a O,
    plan: &'a mut Plan<O::Location>,
    intent: Intent,
}

impl<O: Outline> Decide<O::Location> for Retry<'_, O> {
    #[inline(always)]
    fn decide(&mut self, location: &O::Location, state: u64) -> Decided {
        let Self {
            buckets,
            plan,
            intent,
        } = self;
        let decided = buckets.decide_again(location, plan, *intent, state);
        if !O::WINDOWS || decided.ending != Ending::Stored {
            return decided;
        }
        let ending = match plan.stamp.ensure(*buckets, plan.now_ns) {
            Swap::Stored => return decided,
            Swap::Changed | Swap::Misplaced => Ending::Again,
            Swap::Unavailable => Ending::Unavailable,
            Swap::Untracked => Ending::Untracked,
        };
        Decided::leave(state, ending)
    }
}

/// Decides again on the bucket of a plan, which is in that state now.
#[inline(always)]
pub fn decide_again<O: Outline>(
    buckets: &O,
    location: &O::Location,
    plan: &mut Plan<O::Location>,
    intent: Intent,
    state: u64,
) -> Decided {
    if intent == Intent::Refund {
        return Decided {
            state: plan.refunded::<O>(state),
            ending: Ending::GivenBack,
        };
    }
    let decision = plan.decide(buckets, location, state);
    Decided {
        state: decision.state,
        // To count a refusal, a strategy changes the state as it does for a packet that passes.
        ending: if decision.passes() && intent == Intent::Spend {
            Ending::Stored
        } else {
            Ending::Declined
        },
    }
}
