//! Charging the buckets of other strategies than GCRA, apart from those: most limits have none.
//!
//! A store knows nothing of windows. It reads a state; here it is decided what is to become of it;
//! and the store puts that in its place by compare-and-swap, or else it is decided anew.

use super::strictest::NEVER;
use crate::{
    bucket::{ATTEMPTS, BucketStore, Updated},
    charge::{Charge, Workspace},
    strategy::{
        self, Decision, Strategy,
        moving_window::{self, Cursor},
    },
};

/// What is to be done to a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum WindowChange {
    /// To take tokens, if it has them.
    Spend = 0,
    /// To count that it has refused them, if the strategy does.
    Refuse = 1,
    /// To give them back.
    Refund = 2,
}

impl WindowChange {
    /// The change of that number.
    #[must_use]
    #[inline(always)]
    pub const fn of_number(number: u32) -> Self {
        const REFUSE: u32 = WindowChange::Refuse as u32;
        const REFUND: u32 = WindowChange::Refund as u32;
        match number {
            REFUSE => Self::Refuse,
            REFUND => Self::Refund,
            _ => Self::Spend,
        }
    }
}

/// The steps by which a window is changed.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct Steps<Found> {
    /// Of a moving window, the stamp that the log must have before its cursor leaves it behind.
    pub(crate) stamp: Charge<Found>,
    /// The state by the other.
    pub(crate) swap: Charge<Found>,
    /// 1: the log has not got that stamp yet.
    pub(crate) lacks_stamp: u32,
    /// Always 0.
    pub(crate) reserved: u32,
}

/// Decides what is to become of the bucket of the window in a slot, which was looked for, and
/// prepares the steps to it; returns how strict its refusal would be, as [`super::Strictest`] has
/// it.
#[inline(always)]
pub fn decide_window<B: BucketStore>(
    buckets: &B,
    workspace: &mut Workspace<B::Found>,
    slot: u32,
    wanted: WindowChange,
) -> u64 {
    let (charge, steps) = workspace.charge_and_steps(slot);
    let state = buckets.read(&charge.found);
    steps.lacks_stamp = 0;
    let decision = match charge.spend.strategy() {
        Strategy::MovingWindow => moving(buckets, charge, steps, state, wanted),
        strategy => match wanted {
            WindowChange::Spend => charge.spend.apply(state),
            // A fixed window counts what it refuses as it counts what it lets pass.
            WindowChange::Refuse if matches!(strategy, Strategy::FixedWindow) => {
                Decision::refuse(charge.spend.apply(state).state, 1)
            }
            WindowChange::Refuse => Decision::refuse(state, 1),
            WindowChange::Refund => Decision::pass(charge.spend.undo(state)),
        },
    };
    steps.swap.found = charge.found;
    steps.swap.now_ns = charge.now_ns;
    steps.swap.seen = state;
    steps.swap.spend.set_swap(state, decision.state);
    match decision.wait {
        0 => 0,
        strategy::NEVER => NEVER,
        ticks => charge.spend.layout().ns(ticks).saturating_add(1),
    }
}

/// Changes the bucket of the window in a slot, however many CPUs are at it.
#[inline(always)]
pub fn change_window<B: BucketStore>(
    buckets: &B,
    workspace: &mut Workspace<B::Found>,
    slot: u32,
    wanted: WindowChange,
) -> Updated {
    for _ in 0..ATTEMPTS {
        let refused = buckets.decide_window(workspace, slot, wanted) != 0;
        let (charge, steps) = workspace.charge_and_steps(slot);
        let Some((state, changed)) = steps.swap.spend.swapped() else {
            return Updated::Unavailable;
        };
        if state != changed {
            if steps.lacks_stamp != 0 {
                match buckets.spend(&steps.stamp) {
                    Updated::Stored => {}
                    ended => return ended,
                }
            }
            match buckets.spend(&steps.swap) {
                Updated::Stored => {}
                Updated::Declined => continue,
                ended => return ended,
            }
            charge.seen = state;
            charge.changed = changed;
        }
        return if refused {
            Updated::Declined
        } else {
            Updated::Stored
        };
    }
    Updated::Contended
}

/// Decides on a moving window, as [`moving_window`] says.
#[inline(always)]
fn moving<B: BucketStore>(
    buckets: &B,
    charge: &Charge<B::Found>,
    steps: &mut Steps<B::Found>,
    state: u64,
    wanted: WindowChange,
) -> Decision {
    match wanted {
        WindowChange::Spend => {}
        WindowChange::Refuse => return Decision::refuse(state, 1),
        // The last packet only can be taken out: behind it, the log is what others go by.
        WindowChange::Refund if state == charge.changed => return Decision::pass(charge.seen),
        WindowChange::Refund => return Decision::pass(state),
    }
    let now = charge.now_ns;
    let cursor = Cursor::of_state(state, now);
    // The last one has the latest TAT: when that has passed by any clock, all have.
    if cursor.last == 0 {
        return moving_window::decide(&charge.spend, state, cursor, 0);
    }
    let stamp = &mut steps.stamp;
    let count = charge.spend.count();
    let oldest = if count == 1 {
        cursor.last
    } else {
        let number = cursor.stamp(count);
        let tat = buckets.find_stamp(&charge.found, number, charge.stamp_unit, &mut stamp.found);
        // One that has passed under a longer period counts no longer than the last one.
        tat.min(cursor.last)
    };
    let decision = moving_window::decide(&charge.spend, state, cursor, oldest);
    if decision.passes() {
        let number = cursor.stamp(1);
        stamp.seen = buckets.find_stamp(&charge.found, number, charge.stamp_unit, &mut stamp.found);
        stamp.now_ns = now;
        stamp.spend.set_at_least(cursor.last);
        steps.lacks_stamp = u32::from(stamp.seen < cursor.last);
    }
    decision
}
