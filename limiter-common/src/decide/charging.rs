//! Charging a packet to the buckets of its limits: all of them, or none.

use super::{Verdict, WindowChange, strictest::NEVER, verdict::NO_SLOT};
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

/// Charges the workspace's packet to the buckets of the enforcing limits that count it: to all or,
/// if one of them refuses, to none and says so in the verdict.
#[inline(always)]
pub(super) fn charge<T: Tables, B: BucketStore>(
    buckets: &B,
    tables: &T,
    workspace: &mut Workspace<B::Found>,
) {
    let limits = workspace.verdict.matched & !tables.shape().observing;
    workspace.search.single = u32::from(limits & limits.wrapping_sub(1) == 0);
    let mut charging = Charging {
        tables,
        buckets,
        workspace,
    };
    charging.ask(limits);
    let Workspace {
        strictest, verdict, ..
    } = &mut *charging.workspace;
    if let Some(reason) = strictest.reason() {
        verdict.reason = reason;
        verdict.denied_by = strictest.slot;
        charging.refuse();
    } else {
        charging.charge_all(limits);
    }
}

/// Charges the workspace's packet to the buckets of the observing limits that count it, each by
/// itself, and notes in the verdict those that would drop it.
#[inline(always)]
pub(super) fn observe<T: Tables, B: BucketStore>(
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
    workspace.search.single = 1;
    let mut charging = Charging {
        tables,
        buckets,
        workspace,
    };
    charging.ask(limits);
    let refused = charging.workspace.refused;
    charging.workspace.verdict.would_drop |= refused;
    charging.refuse();
    charging.charge_each(limits & !refused);
}

impl<T: Tables, B: BucketStore> Charging<'_, T, B> {
    /// Asks the buckets of all of `limits` whether they let the packet pass; notes which refuse, and
    /// the strictest of them.
    #[inline(always)]
    fn ask(&mut self, limits: u64) {
        self.workspace.refused = 0;
        for slot in slots(self.tables) {
            if contains(limits, slot) {
                let mut strictness = self.buckets.prepare(self.tables, self.workspace, slot);
                // One that is alone decides when it is charged.
                if self.is_window(slot) && strictness == 0 && self.workspace.search.single == 0 {
                    let wanted = WindowChange::Spend;
                    strictness = self.buckets.decide_window(self.workspace, slot, wanted);
                }
                let strictness = self.tables.opaque(strictness);
                self.workspace.strictest.consider(slot, strictness);
                if strictness != 0 {
                    self.workspace.refused |= bit(slot);
                }
            }
        }
    }

    /// Charges all of `limits`, or none and says so in the verdict.
    #[inline(always)]
    fn charge_all(&mut self, limits: u64) {
        // The verifier has learned the bits that were asked for; from here on it would walk
        // everything once for each set of them.
        let limits = self.tables.opaque(limits);
        for slot in slots(self.tables) {
            if contains(limits, slot) {
                let slot = self.unknown(slot);
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
        let charged = limits & (bit(refused_by) - 1);
        for slot in slots(self.tables) {
            if contains(charged, slot) {
                // A refund that fails leaves the bucket charged too much, never too little.
                self.refund(slot);
            }
        }
    }

    /// Charges each of `limits` that has the tokens, every one by itself, and notes the others.
    #[inline(always)]
    fn charge_each(&mut self, limits: u64) {
        let limits = self.tables.opaque(limits);
        for slot in slots(self.tables) {
            if contains(limits, slot) {
                let slot = self.unknown(slot);
                if !matches!(self.spend(slot), Updated::Stored | Updated::Untracked) {
                    self.workspace.verdict.would_drop |= bit(slot);
                }
            }
        }
    }

    /// Has those that have refused count what they refused, if their strategy does.
    #[inline(always)]
    fn refuse(&mut self) {
        if !self.has_windows() {
            return;
        }
        let limits = self.tables.opaque(self.workspace.refused);
        for slot in slots(self.tables) {
            if contains(limits, slot) && self.workspace.charge(slot).spend.counts_refusal() {
                // If other CPUs are faster all the time, the window is theirs, and as good as full.
                let wanted = WindowChange::Refuse;
                self.buckets.change_window(self.workspace, slot, wanted);
            }
        }
    }

    /// The slot, as a number of which the verifier knows no more than its bounds.
    ///
    /// In a loop that calls a function, verifiers before Linux 6.5 compare all numbers that they
    /// know, also those that nothing reads any more. A slot that is left over from an earlier round
    /// makes another state of each later one, and the loop is walked as often as two slots go
    /// together.
    #[inline(always)]
    fn unknown(&self, slot: u32) -> u32 {
        (self.tables.opaque(slot.into()) & 63) as u32
    }

    /// Charges the bucket of the limit in a slot.
    #[inline(always)]
    fn spend(&mut self, slot: u32) -> Updated {
        if self.is_window(slot) {
            let wanted = WindowChange::Spend;
            self.buckets.change_window(self.workspace, slot, wanted)
        } else {
            self.buckets.spend(self.workspace.charge(slot))
        }
    }

    /// Gives the bucket back what it was charged.
    #[inline(always)]
    fn refund(&mut self, slot: u32) {
        if self.is_window(slot) {
            let wanted = WindowChange::Refund;
            self.buckets.change_window(self.workspace, slot, wanted);
        } else {
            self.buckets.refund(self.workspace.charge(slot));
        }
    }

    /// Whether there are limits of other strategies than GCRA.
    #[inline(always)]
    fn has_windows(&self) -> bool {
        B::WINDOWS && self.tables.shape().windows != 0
    }

    /// Whether the limit in a slot, whose charge is prepared, is one of them.
    #[inline(always)]
    fn is_window(&mut self, slot: u32) -> bool {
        self.has_windows() && !self.workspace.charge(slot).spend.is_gcra()
    }
}

/// Prepares the charge of the limit in a slot, and looks for its bucket; returns how strict a
/// refusal by GCRA would be, as [`super::Strictest`] has it.
#[inline(always)]
pub fn prepare<T: Tables, B: BucketStore>(
    buckets: &B,
    tables: &T,
    workspace: &mut Workspace<B::Found>,
    slot: u32,
) -> u64 {
    let Workspace {
        packet,
        search,
        charges,
        ..
    } = workspace;
    let charge = &mut charges[(slot % MAX_LIMITS) as usize];
    if B::WINDOWS {
        // Of no strategy that counts what it refuses.
        charge.spend.set_none();
    }
    let Some(Account { key, budget, cost }) = account(tables, packet, slot) else {
        // The policy's compiler excludes it. What would be charged is not known, so nothing
        // passes.
        return NEVER;
    };
    let spend = if B::WINDOWS {
        budget.spend(packet.now, cost)
    } else {
        budget.spend_gcra(packet.now, cost)
    };
    let Ok(spend) = spend else {
        return NEVER;
    };
    if B::WINDOWS {
        charge.spend = spend;
    } else {
        charge.spend.set_gcra(&spend.gcra());
    }
    charge.now_ns = packet.now;
    charge.seen = buckets.find(&key, budget.unit, search, &mut charge.found);
    if B::WINDOWS && !spend.is_gcra() {
        charge.stamp_unit = budget.stamp_unit;
        return if cost > spend.count() { NEVER } else { 0 };
    }
    match spend.gcra().apply(charge.seen) {
        Ok(_) => 0,
        // Looked up again: where they stand is not to take up stack through all of the above.
        Err(Wait(ticks)) => match parameters(tables, &packet.class, slot) {
            Some(budget) => budget.gcra.ns(ticks).saturating_add(1),
            None => NEVER,
        },
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
