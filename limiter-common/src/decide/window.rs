//! Charging the buckets of other strategies than GCRA, apart from those: most limits have none.

use super::strictest::NEVER;
use crate::{
    bucket::{ATTEMPTS, BucketStore, Updated},
    charge::{Charge, Workspace},
    strategy::{
        self, Decision, Strategy,
        moving_window::{self, Cursor},
    },
};

/// Asks a bucket that was looked for whether it lets the packet pass; returns how strict its
/// refusal would be, as [`super::Strictest`] has it.
#[inline(always)]
pub fn ask_window<B: BucketStore>(
    buckets: &B,
    workspace: &mut Workspace<B::Found>,
    slot: u32,
) -> u64 {
    let (charge, step) = workspace.charge_and_step(slot);
    let decision = match charge.spend.strategy() {
        Strategy::MovingWindow => {
            let cursor = Cursor::of_state(charge.seen, charge.now_ns);
            decide(buckets, charge, step, charge.seen, cursor)
        }
        Strategy::Gcra | Strategy::FixedWindow | Strategy::SlidingWindowCounter => {
            charge.spend.apply(charge.seen)
        }
    };
    if decision.passes() {
        return 0;
    }
    charge.refused = decision.state;
    match decision.wait {
        strategy::NEVER => NEVER,
        ticks => charge
            .spend
            .window()
            .layout
            .ns(ticks)
            .saturating_add(1)
            .min(NEVER - 1),
    }
}

/// Charges a bucket that was looked for.
#[inline(always)]
pub fn spend_window<B: BucketStore>(
    buckets: &B,
    workspace: &mut Workspace<B::Found>,
    slot: u32,
) -> Updated {
    let (charge, step) = workspace.charge_and_step(slot);
    match charge.spend.strategy() {
        Strategy::MovingWindow => spend_log(buckets, charge, step),
        Strategy::Gcra | Strategy::FixedWindow | Strategy::SlidingWindowCounter => {
            buckets.spend(charge)
        }
    }
}

/// Lets a packet pass a moving window, as [`moving_window`] says.
///
/// What was swapped is left in the charge, so that it can be given back: by the one who comes next
/// to the cursor, or else never.
#[inline(always)]
fn spend_log<B: BucketStore>(
    buckets: &B,
    charge: &mut Charge<B::Found>,
    step: &mut Charge<B::Found>,
) -> Updated {
    step.now_ns = charge.now_ns;
    for _ in 0..ATTEMPTS {
        let seen = buckets.read(&charge.found);
        let cursor = Cursor::of_state(seen, charge.now_ns);
        let decision = decide(buckets, charge, step, seen, cursor);
        if !decision.passes() {
            return Updated::Declined;
        }
        if cursor.last > charge.now_ns {
            // It still counts: the log must have it before the cursor leaves it behind.
            let stamp = cursor.stamp(1);
            step.seen =
                buckets.find_stamp(&charge.found, stamp, charge.stamp_unit, &mut step.found);
            step.spend.set_at_least(cursor.last);
            if step.seen < cursor.last {
                match buckets.spend(step) {
                    Updated::Stored => {}
                    ended => return ended,
                }
            }
        }
        step.found = charge.found;
        step.seen = seen;
        step.spend.set_swap(seen, decision.state);
        match buckets.spend(step) {
            Updated::Declined => {}
            ended => {
                charge.spend.set_swap(seen, decision.state);
                return ended;
            }
        }
    }
    Updated::Contended
}

/// Decides on a packet whose log has its cursor there.
#[inline(always)]
fn decide<B: BucketStore>(
    buckets: &B,
    charge: &Charge<B::Found>,
    step: &mut Charge<B::Found>,
    state: u64,
    cursor: Cursor,
) -> Decision {
    let window = charge.spend.window();
    // The last one has the latest TAT: when that has passed, all have.
    let oldest = if window.count == 1 || cursor.last <= charge.now_ns {
        cursor.last
    } else {
        let stamp = cursor.stamp(window.count);
        buckets.find_stamp(&charge.found, stamp, charge.stamp_unit, &mut step.found)
    };
    moving_window::decide(state, cursor, oldest, charge.now_ns, window.period)
}
