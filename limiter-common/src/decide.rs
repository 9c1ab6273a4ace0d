//! The decision: every matching limit is asked; one denial drops the packet and nothing is
//! charged; otherwise all are charged.
//!
//! Two passes. The first only reads: most denials end there, having touched nothing. The
//! second charges each bucket by compare-and-swap, deciding again on the state it swaps
//! out; where another CPU has emptied a bucket in between, what was charged before it is
//! refunded and the packet is dropped. In that window other packets of the same source may
//! be denied that would have passed; none passes that would have been denied.
//!
//! Limits that only observe come after the others, on packets that those let pass, each by
//! itself: Boulder's spend-only transactions.

use crate::{
    bucket::{BucketStore, Updated},
    charge::{Charge, Packet, Prepared},
    gcra::Wait,
    limit::MAX_LIMITS,
    offender::OffenderStore,
    packet::Headers,
    policy::{Tables, classify},
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

/// Decides on a frame, charging the buckets it is to be charged to, or recording the limit that
/// drops it.
#[inline(always)]
pub fn decide<H, C, T, B, O>(
    headers: &H,
    clock: &C,
    tables: &T,
    buckets: &B,
    offenders: &O,
) -> Verdict
where
    H: Headers,
    C: Clock,
    T: Tables,
    B: BucketStore,
    O: OffenderStore,
{
    let mut packet = Packet::unknown(tables.opaque(0));
    match headers.parse(&mut packet.facts) {
        Ok(()) => decide_packet(&mut packet, clock, tables, buckets, offenders),
        Err(reason) => Verdict::without_limits(reason),
    }
}

#[inline(always)]
fn decide_packet<C, T, B, O>(
    packet: &mut Packet,
    clock: &C,
    tables: &T,
    buckets: &B,
    offenders: &O,
) -> Verdict
where
    C: Clock,
    T: Tables,
    B: BucketStore,
    O: OffenderStore,
{
    let shape = tables.shape();
    if shape.limit_count == 0 {
        return Verdict::without_limits(Reason::Unlimited);
    }
    packet.class = classify(tables, packet.facts.source);
    let matched = tables.matching(packet);
    if matched == 0 {
        return Verdict::without_limits(Reason::Unlimited);
    }
    packet.now = clock.now();
    let enforcing = matched & !shape.observing;
    let mut verdict = Verdict {
        matched,
        ..Verdict::without_limits(Reason::WithinLimits)
    };
    let mut charge = Charge::NONE;
    charge_all(
        packet,
        enforcing,
        tables,
        buckets,
        &mut charge,
        &mut verdict,
    );
    if let Some(slot) = verdict.denied_by() {
        offenders.record(tables, packet, slot);
    } else if shape.observing != 0 {
        let observing = matched & shape.observing;
        verdict.would_drop = observe(packet, observing, tables, buckets, &mut charge);
    }
    verdict
}

/// Charges all of `limits`, or none and says so in the verdict.
#[inline(always)]
fn charge_all<T, B>(
    packet: &Packet,
    limits: u64,
    tables: &T,
    buckets: &B,
    charge: &mut Charge,
    verdict: &mut Verdict,
) where
    T: Tables,
    B: BucketStore,
{
    // One limit alone is charged at once: there is nothing else to leave uncharged.
    if limits & limits.wrapping_sub(1) != 0 {
        let mut strictest = Strictest::default();
        for_each_slot(tables, limits, |slot| {
            let strictness = match tables.prepare(packet, slot, charge) {
                Prepared::Nothing => return true,
                Prepared::LargerThanBurst => NEVER,
                Prepared::Charge => {
                    buckets.locate(charge);
                    match charge.spend.apply(buckets.read(charge)) {
                        Ok(_) => 0,
                        Err(Wait(ticks)) => charge.ns_per_tick.scale(ticks) + 1,
                    }
                }
            };
            strictest.consider(tables, slot, strictness);
            true
        });
        if let Some(reason) = strictest.reason() {
            verdict.reason = reason;
            verdict.denied_by = strictest.slot;
            return;
        }
    }

    let mut refused_by = NO_SLOT;
    for_each_slot(tables, limits, |slot| {
        let refusal = match tables.prepare(packet, slot, charge) {
            Prepared::Nothing => return true,
            Prepared::LargerThanBurst => Reason::LargerThanBurst,
            Prepared::Charge => {
                buckets.locate(charge);
                match buckets.spend(charge) {
                    Updated::Stored => return true,
                    Updated::Untracked => {
                        verdict.reason = Reason::Untracked;
                        return true;
                    }
                    Updated::Declined => Reason::OverLimit,
                    Updated::Contended => Reason::Contended,
                    Updated::Unavailable => Reason::BucketUnavailable,
                }
            }
        };
        verdict.reason = refusal;
        refused_by = slot;
        false
    });
    if refused_by == NO_SLOT {
        return;
    }
    let refused_by = (tables.opaque(refused_by.into()) & 63) as u32;
    verdict.denied_by = refused_by;
    let charged = limits & (bit(refused_by) - 1);
    for_each_slot(tables, charged, |slot| {
        if tables.prepare(packet, slot, charge) == Prepared::Charge {
            buckets.locate(charge);
            // A refund that fails leaves the bucket charged too much, never too little.
            buckets.refund(charge);
        }
        true
    });
}

/// Charges each of `limits` that has the tokens, every one by itself; returns the others.
#[inline(always)]
fn observe<T, B>(packet: &Packet, limits: u64, tables: &T, buckets: &B, charge: &mut Charge) -> u64
where
    T: Tables,
    B: BucketStore,
{
    let mut would_drop = 0;
    for_each_slot(tables, limits, |slot| {
        let has_tokens = tables.prepare(packet, slot, charge) == Prepared::Charge && {
            buckets.locate(charge);
            matches!(buckets.spend(charge), Updated::Stored | Updated::Untracked)
        };
        if !has_tokens {
            would_drop = tables.opaque(would_drop | bit(slot));
        }
        true
    });
    would_drop
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

/// Calls `step` for each slot of `limits`, until it returns false.
#[inline(always)]
fn for_each_slot<T: Tables>(tables: &T, limits: u64, mut step: impl FnMut(u32) -> bool) {
    let count = tables.shape().limit_count;
    // The verifier wants the bound to be a constant.
    for slot in 0..MAX_LIMITS {
        if slot >= count {
            return;
        }
        if limits & bit(slot) != 0 && !step(slot) {
            return;
        }
    }
}
