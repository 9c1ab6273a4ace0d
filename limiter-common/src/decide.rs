//! The decision: every matching limit is asked; one denial drops the packet and nothing is
//! charged; otherwise all are charged.
//!
//! Two passes. The first only reads: most denials end there, having touched nothing. The
//! second charges each bucket by compare-and-swap, from the state that the first has seen, or
//! else deciding again on the one that it finds; where another CPU has emptied a bucket in between, what was charged before it is
//! refunded and the packet is dropped. In that window other packets of the same source may
//! be denied that would have passed; none passes that would have been denied.
//!
//! Limits that only observe come after the others, on packets that those let pass, each by
//! itself: Boulder's spend-only transactions.

use crate::{
    bucket::{BucketStore, Hashed, Updated},
    charge::{Account, Packet, Workspace, account},
    gcra::Wait,
    limit::MAX_LIMITS,
    packet::{Facts, Headers},
    policy::{Tables, classify, matching},
    reason::{Action, Reason},
};

/// The time.
pub trait Clock {
    /// Nanoseconds since any fixed moment, the same for all CPUs but for microseconds.
    fn now(&self) -> u64;
}

/// What was decided on a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Verdict {
    /// The one reason.
    pub reason: Reason,
    /// The slot of the limit that dropped the packet, or [`NO_SLOT`].
    denied_by: u32,
    /// The slots of the limits that count the packet, as bits. When it passed, all of them
    /// were charged but those of `would_drop`; when it was dropped, none.
    pub matched: u64,
    /// The slots of the limits that would have dropped it, if they did more than observe.
    pub would_drop: u64,
}

/// In place of a slot: none. Not an `Option`, whose undefined half LLVM may move about.
const NO_SLOT: u32 = u32::MAX;

impl Verdict {
    /// On a packet that no limit counts.
    #[must_use]
    #[inline(always)]
    pub const fn without_limits(reason: Reason) -> Self {
        Self {
            reason,
            denied_by: NO_SLOT,
            matched: 0,
            would_drop: 0,
        }
    }

    /// A verdict from its parts as numbers, in the order in which they lie in memory; `None`
    /// when there is no such reason.
    #[must_use]
    pub const fn from_raw(
        reason: u32,
        denied_by: u32,
        matched: u64,
        would_drop: u64,
    ) -> Option<Self> {
        match Reason::of_number(reason) {
            Some(reason) => Some(Self {
                reason,
                denied_by,
                matched,
                would_drop,
            }),
            None => None,
        }
    }

    /// The slot of the limit that dropped the packet: of several that denied, the one to
    /// wait for longest.
    #[must_use]
    #[inline(always)]
    pub const fn denied_by(&self) -> Option<u32> {
        if self.denied_by == NO_SLOT {
            None
        } else {
            Some(self.denied_by)
        }
    }

    /// What is done to the packet, under the policy that decided on it.
    #[inline(always)]
    pub fn action<T: Tables>(&self, tables: &T) -> Action {
        self.reason.action(if tables.shape().malformed_pass == 1 {
            Action::Pass
        } else {
            Action::Drop
        })
    }
}

/// Decides on a frame, charging the buckets it is to be charged to.
#[inline(always)]
pub fn decide<H, C, T, B>(
    headers: &H,
    clock: &C,
    tables: &T,
    buckets: &B,
    workspace: &mut Workspace<B::Found>,
) -> Verdict
where
    H: Headers,
    C: Clock,
    T: Tables,
    B: BucketStore,
{
    let mut facts = Facts::NONE;
    if let Err(reason) = headers.parse(&mut facts) {
        return Verdict::without_limits(reason);
    }
    let shape = tables.shape();
    if shape.limit_count == 0 {
        return Verdict::without_limits(Reason::Unlimited);
    }
    let Some(class) = classify(tables, &facts.source) else {
        return Verdict::without_limits(Reason::Unlimited);
    };
    let matched = matching(tables, &facts, class);
    if matched == 0 {
        return Verdict::without_limits(Reason::Unlimited);
    }
    let packet = Packet {
        facts,
        class,
        now: clock.now(),
    };
    let mut verdict = Verdict {
        matched,
        ..Verdict::without_limits(Reason::WithinLimits)
    };
    let mut charging = Charging {
        packet: &packet,
        tables,
        buckets,
        workspace,
        hashed: Hashed::NONE,
    };
    charging.charge_all(matched & !shape.observing, &mut verdict);
    if shape.observing != 0 && verdict.denied_by == NO_SLOT {
        verdict.would_drop = charging.observe(matched & shape.observing);
    }
    verdict
}

/// A packet being charged to the buckets of its limits.
struct Charging<'a, T, B: BucketStore> {
    packet: &'a Packet<'a>,
    tables: &'a T,
    buckets: &'a B,
    workspace: &'a mut Workspace<B::Found>,
    hashed: Hashed,
}

impl<T: Tables, B: BucketStore> Charging<'_, T, B> {
    /// Charges all of `limits`, or none and says so in the verdict.
    #[inline(always)]
    fn charge_all(&mut self, limits: u64, verdict: &mut Verdict) {
        let tables = self.tables;
        let alone = limits & limits.wrapping_sub(1) == 0;
        let mut strictest = Strictest::default();
        for slot in slots(tables, limits) {
            strictest.consider(tables, slot, self.prepare(slot, alone));
        }
        if let Some(reason) = strictest.reason() {
            verdict.reason = reason;
            verdict.denied_by = strictest.slot;
            return;
        }

        let mut refused_by = NO_SLOT;
        for slot in slots(tables, limits) {
            let refusal = match self.buckets.spend(self.workspace.charge(slot)) {
                Updated::Stored => continue,
                Updated::Untracked => {
                    verdict.reason = Reason::Untracked;
                    continue;
                }
                Updated::Declined => Reason::OverLimit,
                Updated::Contended => Reason::Contended,
                Updated::Unavailable => Reason::BucketUnavailable,
            };
            verdict.reason = refusal;
            refused_by = slot;
            break;
        }
        if refused_by == NO_SLOT {
            return;
        }
        let refused_by = (tables.opaque(refused_by.into()) & 63) as u32;
        verdict.denied_by = refused_by;
        for slot in slots(tables, limits & (bit(refused_by) - 1)) {
            // A refund that fails leaves the bucket charged too much, never too little.
            self.buckets.refund(self.workspace.charge(slot));
        }
    }

    /// Charges each of `limits` that has the tokens, every one by itself; returns the others.
    #[inline(always)]
    fn observe(&mut self, limits: u64) -> u64 {
        let tables = self.tables;
        let mut would_drop = 0;
        for slot in slots(tables, limits) {
            let has_tokens = self.prepare(slot, true) == 0
                && matches!(
                    self.buckets.spend(self.workspace.charge(slot)),
                    Updated::Stored | Updated::Untracked
                );
            if !has_tokens {
                would_drop = tables.opaque(would_drop | bit(slot));
            }
        }
        would_drop
    }

    /// Prepares the charge of the limit in a slot; returns how strict it would be, as
    /// [`Strictest`] has it.
    #[inline(always)]
    fn prepare(&mut self, slot: u32, alone: bool) -> u64 {
        let Some(Account { key, gcra, cost }) = account(self.tables, self.packet, slot) else {
            // The policy's compiler excludes it. What would be charged is not known, so nothing
            // passes.
            return NEVER;
        };
        let Ok(spend) = gcra.spend(gcra.ticks(self.packet.now), cost) else {
            return NEVER;
        };
        let scale = gcra.scale;
        let charge = self.workspace.charge(slot);
        let seen = self
            .buckets
            .find(&key, scale, alone, &mut self.hashed, &mut charge.found);
        charge.spend = spend;
        charge.seen = seen;
        charge.now_ns = self.packet.now;
        match spend.apply(seen) {
            Ok(_) => 0,
            // Looked up again: which table its parameters are in would else be one more thing
            // that the verifier follows through all of the above.
            Err(Wait(ticks)) => match account(self.tables, self.packet, slot) {
                Some(Account { gcra, .. }) => gcra.ns(ticks).saturating_add(1),
                None => NEVER,
            },
        }
    }
}

/// The strictest denial so far.
#[derive(Default)]
struct Strictest {
    /// 0: none. [`NEVER`]: the packet can never pass. Else 1 more than the nanoseconds to
    /// wait.
    strictness: u64,
    slot: u32,
}

/// The strictness of a denial that no waiting ends.
const NEVER: u64 = u64::MAX;

impl Strictest {
    #[inline(always)]
    fn consider<T: Tables>(&mut self, tables: &T, slot: u32, strictness: u64) {
        if strictness > self.strictness {
            self.strictness = tables.opaque(strictness);
            self.slot = (tables.opaque(slot.into()) & 63) as u32;
        }
    }

    #[inline(always)]
    const fn reason(&self) -> Option<Reason> {
        match self.strictness {
            0 => None,
            NEVER => Some(Reason::LargerThanBurst),
            _ => Some(Reason::OverLimit),
        }
    }
}

/// The bit of a slot.
#[inline(always)]
const fn bit(slot: u32) -> u64 {
    1 << (slot & 63)
}

/// The slots of `limits`, in their order.
#[inline(always)]
fn slots<T: Tables>(tables: &T, limits: u64) -> Slots {
    Slots {
        // The verifier learns the bits that one loop asks for, and would walk the next one for
        // each set of them.
        limits: tables.opaque(limits),
        next: 0,
        count: tables.shape().limit_count,
    }
}

/// An iterator, so that the body of a loop over it is no function of its own.
struct Slots {
    limits: u64,
    next: u32,
    count: u32,
}

impl Iterator for Slots {
    type Item = u32;

    #[inline(always)]
    fn next(&mut self) -> Option<u32> {
        // The verifier wants the bound to be a constant.
        while self.next < MAX_LIMITS && self.next < self.count {
            let slot = self.next;
            self.next += 1;
            if self.limits & bit(slot) != 0 {
                return Some(slot);
            }
        }
        None
    }
}
