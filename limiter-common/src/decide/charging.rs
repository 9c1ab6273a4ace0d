//! Charging a packet to the buckets of its limits: all of them, or none.

use super::{Verdict, strictest::NEVER, verdict::NO_SLOT};
use crate::{
    bucket::{BucketStore, Updated},
    charge::{Account, Workspace, account},
    limit::MAX_LIMITS,
    policy::{Tables, parameters},
    strategy::gcra::Wait,
};

/// A packet being charged to the buckets of its limits.
///
/// What the loops over them carry from one to the next is in the workspace and not in variables:
/// of memory the kernel's verifier does not follow what it holds, and so walks each round once.
struct Charging<'a, T, B: BucketStore> {
    tables: &'a T,
    buckets: &'a B,
    workspace: &'a mut Workspace<B::Found>,
}

/// Charges the workspace's packet to the buckets of the enforcing limits that count it, as the
/// verdict there has them: to all or, if one of them refuses, to none.
#[inline(always)]
pub fn charge<T: Tables, B: BucketStore>(
    buckets: &B,
    tables: &T,
    workspace: &mut Workspace<B::Found>,
) {
    let limits = workspace.verdict.matched & !tables.shape().observing;
    let mut charging = Charging {
        tables,
        buckets,
        workspace,
    };
    charging.charge_all(limits);
}

/// Charges the workspace's packet to the buckets of the observing limits that count it, each by
/// itself, and notes in the verdict those that would drop it.
#[inline(always)]
pub fn observe<T: Tables, B: BucketStore>(
    buckets: &B,
    tables: &T,
    workspace: &mut Workspace<B::Found>,
) {
    let Verdict {
        matched,
        would_drop,
        ..
    } = workspace.verdict;
    let limits = matched & tables.shape().observing & !would_drop;
    let mut charging = Charging {
        tables,
        buckets,
        workspace,
    };
    charging.observe(limits);
}

impl<T: Tables, B: BucketStore> Charging<'_, T, B> {
    /// Charges all of `limits`, or none and says so in the verdict.
    #[inline(always)]
    fn charge_all(&mut self, limits: u64) {
        let single = limits & limits.wrapping_sub(1) == 0;
        self.workspace.search.single = u32::from(single);
        for slot in slots(self.tables) {
            if contains(limits, slot) {
                let strictness = self.tables.opaque(self.prepare(slot));
                self.workspace.strictest.consider(slot, strictness);
            }
        }
        let Workspace {
            strictest, verdict, ..
        } = &mut *self.workspace;
        if let Some(reason) = strictest.reason() {
            verdict.reason = reason;
            verdict.denied_by = strictest.slot;
            return;
        }

        // The verifier has learned the bits that the first pass asked for; from here on it would walk
        // everything once for each set of them, and once for each slot that may have refused.
        let limits = self.tables.opaque(limits);
        for slot in slots(self.tables) {
            if contains(limits, slot) {
                let updated = self.spend(slot);
                if !self.workspace.verdict.note(slot, updated) {
                    break;
                }
            }
        }
        let refused_by = self.workspace.verdict.denied_by;
        if refused_by == NO_SLOT {
            return;
        }
        let refused_by = (self.tables.opaque(refused_by.into()) & 63) as u32;
        let charged = limits & (bit(refused_by) - 1);
        for slot in slots(self.tables) {
            if contains(charged, slot) {
                // A refund that fails leaves the bucket charged too much, never too little.
                self.buckets.refund(self.workspace.charge(slot));
            }
        }
    }

    /// Charges each of `limits` that has the tokens, every one by itself, and notes the others.
    #[inline(always)]
    fn observe(&mut self, limits: u64) {
        self.workspace.search.single = 1;
        for slot in slots(self.tables) {
            if contains(limits, slot) {
                let has_tokens = self.prepare(slot) == 0
                    && matches!(self.spend(slot), Updated::Stored | Updated::Untracked);
                if !has_tokens {
                    self.workspace.verdict.would_drop |= bit(slot);
                }
            }
        }
    }

    /// Charges the bucket of the limit in a slot.
    #[inline(always)]
    fn spend(&mut self, slot: u32) -> Updated {
        if self.tables.shape().windows != 0 && !self.workspace.charge(slot).spend.is_gcra() {
            self.buckets.spend_window(self.workspace, slot)
        } else {
            self.buckets.spend(self.workspace.charge(slot))
        }
    }

    /// Prepares the charge of the limit in a slot; returns how strict it would be, as
    /// [`Strictest`] has it.
    #[inline(always)]
    fn prepare(&mut self, slot: u32) -> u64 {
        let Some(Account { key, budget, cost }) =
            account(self.tables, &self.workspace.packet, slot)
        else {
            // The policy's compiler excludes it. What would be charged is not known, so nothing
            // passes.
            return NEVER;
        };
        let Workspace {
            packet,
            search,
            charges,
            ..
        } = &mut *self.workspace;
        let Ok(spend) = budget.spend(packet.now, cost) else {
            return NEVER;
        };
        let charge = &mut charges[(slot % MAX_LIMITS) as usize];
        charge.spend = spend;
        charge.now_ns = packet.now;
        charge.seen = self
            .buckets
            .find(&key, budget.unit, search, &mut charge.found);
        if self.tables.shape().windows != 0 && !spend.is_gcra() {
            charge.stamp_unit = budget.stamp_unit;
            return self.buckets.ask_window(self.workspace, slot);
        }
        match spend.gcra().apply(charge.seen) {
            Ok(_) => 0,
            // Looked up again: where they stand is not to take up stack through all of the above.
            Err(Wait(ticks)) => match parameters(self.tables, &packet.class, slot) {
                Some(budget) => budget.gcra.ns(ticks).saturating_add(1),
                None => NEVER,
            },
        }
    }
}

/// The bit of a slot.
#[inline(always)]
const fn bit(slot: u32) -> u64 {
    1 << (slot & 63)
}

/// All slots that have a limit.
#[inline(always)]
fn slots<T: Tables>(tables: &T) -> impl Iterator<Item = u32> {
    let count = tables.shape().limit_count;
    // The verifier wants the bound to be a constant.
    (0..MAX_LIMITS).take_while(move |slot| *slot < count)
}

/// Whether a slot is in a set of limits.
#[inline(always)]
const fn contains(limits: u64, slot: u32) -> bool {
    limits & bit(slot) != 0
}
