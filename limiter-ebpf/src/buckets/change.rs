//! What a charge does to its bucket: of GCRA in place, of windows by a function of its own, which
//! the verifier walks once.

use limiter_common::strategy::{Change, Decision, Wanted};

use super::Charge;
use crate::globals;

pub(super) const SPEND: u32 = 0;
pub(super) const REFUND: u32 = 1;
pub(super) const REFUSE: u32 = 2;

/// A change of a charge's bucket, by one of the numbers above.
pub(super) struct ChargeChange<'a> {
    pub(super) charge: &'a Charge,
    pub(super) kind: u32,
}

impl Wanted for ChargeChange<'_> {
    #[inline(always)]
    fn is_refund(&self) -> bool {
        self.kind == REFUND
    }

    #[inline(always)]
    fn apply(&self, state: u64) -> Decision {
        let spend = &self.charge.spend;
        if globals::shape().windows == 0 || spend.is_gcra() {
            return if self.kind == REFUND {
                Decision::pass(spend.gcra().undo(state))
            } else {
                spend.gcra().decide(state)
            };
        }
        let mut changed = state;
        let refused = limiter_change_window(self.charge, self.kind, &raw mut changed);
        Decision {
            state: changed,
            wait: refused.into(),
        }
    }
}

/// Replaces the state of a window by what the change makes of it; returns whether it refuses, as a
/// number.
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn limiter_change_window(charge: *const Charge, kind: u32, state: *mut u64) -> u32 {
    // SAFETY: the verifier lets a caller pass null or whole values, nothing else, which nobody
    // else uses meanwhile.
    let (Some(charge), Some(state)) = (unsafe { (charge.as_ref(), state.as_mut()) }) else {
        return 1;
    };
    let spend = &charge.spend;
    let wanted = match kind {
        REFUND => Change::Refund(spend),
        REFUSE => Change::Refuse(spend),
        _ => Change::Spend(spend),
    };
    let decision = wanted.apply(*state);
    *state = decision.state;
    u32::from(!decision.passes())
}
