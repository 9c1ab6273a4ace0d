//! The decision: every matching limit is asked; one denial drops the packet and nothing is
//! charged; otherwise all are charged.
//!
//! Two passes. The first only reads: most denials end there, having touched nothing. The
//! second charges each bucket by compare-and-swap, deciding again on the state it swaps
//! out; where another CPU has emptied a bucket in between, what was charged before it is
//! refunded and the packet is dropped. In that window other packets of the same source may
//! be denied that would have passed; none passes that would have been denied.

use crate::{
    bucket::{BucketStore, Updated},
    charge::{Charge, Match, Packet},
    gcra::Wait,
    limit::MAX_LIMITS,
    packet::{self, Facts, Frame},
    policy::{Tables, classify},
    reason::Reason,
};

/// The time.
pub trait Clock {
    /// Nanoseconds since any fixed moment, the same for all CPUs but for microseconds.
    fn now(&self) -> u64;
}

/// What was decided on a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// The one reason.
    pub reason: Reason,
    /// The slots of the limits that matched, as bits. When the packet passed, all of them
    /// were charged; when it was dropped, none.
    pub matched: u64,
    /// The slot of the limit that dropped the packet, or [`NO_SLOT`].
    denied_by: u32,
}

/// In place of a slot: none. Not an `Option`, whose undefined half LLVM may move about.
const NO_SLOT: u32 = u32::MAX;

impl Verdict {
    #[inline(always)]
    const fn without_limits(reason: Reason) -> Self {
        Self {
            reason,
            matched: 0,
            denied_by: NO_SLOT,
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
}

/// Decides on a frame, charging the buckets it is to be charged to.
#[inline(always)]
pub fn decide<F, C, T, B>(frame: &F, clock: &C, tables: &T, buckets: &B) -> Verdict
where
    F: Frame,
    C: Clock,
    T: Tables,
    B: BucketStore,
{
    let mut facts = Facts::NONE;
    match packet::parse(frame, &mut facts) {
        Ok(()) => decide_packet(&facts, clock, tables, buckets),
        Err(reason) => Verdict::without_limits(reason),
    }
}

#[inline(always)]
fn decide_packet<C, T, B>(facts: &Facts, clock: &C, tables: &T, buckets: &B) -> Verdict
where
    C: Clock,
    T: Tables,
    B: BucketStore,
{
    let limits = tables.limit_count();
    if limits == 0 {
        return Verdict::without_limits(Reason::Unlimited);
    }
    let packet = Packet::new(facts, classify(tables, facts.source), clock.now());
    let mut charge = Charge::NONE;

    let mut matched = 0;
    let mut strictest = Strictest::default();
    for_each_slot(limits, |slot| {
        let strictness = match tables.prepare(&packet, slot, &mut charge) {
            Match::None => return true,
            Match::LargerThanBurst => NEVER,
            Match::Charge => match charge.spend.apply(buckets.read(&charge.key)) {
                Ok(_) => 0,
                Err(Wait(ticks)) => charge.ns_per_tick.scale(ticks) + 1,
            },
        };
        matched = tables.opaque(matched | bit(slot));
        strictest.consider(tables, slot, strictness);
        true
    });
    if matched == 0 {
        return Verdict::without_limits(Reason::Unlimited);
    }
    let denied = |reason, slot| Verdict {
        reason,
        matched,
        denied_by: slot,
    };
    if let Some(reason) = strictest.reason() {
        return denied(reason, strictest.slot);
    }

    let mut refusal = Reason::WithinLimits;
    let mut refused_by = limits;
    for_each_slot(limits, |slot| {
        if tables.prepare(&packet, slot, &mut charge) != Match::Charge {
            return true;
        }
        refusal = match buckets.update(&charge.key, &charge.spend) {
            Updated::Stored => return true,
            Updated::Declined => Reason::OverLimit,
            Updated::Contended => Reason::Contended,
            Updated::Unavailable => Reason::BucketUnavailable,
        };
        refused_by = slot;
        false
    });
    if matches!(refusal, Reason::WithinLimits) {
        return Verdict {
            reason: Reason::WithinLimits,
            matched,
            denied_by: NO_SLOT,
        };
    }
    let refused_by = (tables.opaque(refused_by.into()) & 63) as u32;
    for_each_slot(limits, |slot| {
        if slot >= refused_by {
            return false;
        }
        if tables.prepare(&packet, slot, &mut charge) == Match::Charge {
            // A refund that fails leaves the bucket charged too much, never too little.
            buckets.update(&charge.key, &charge.spend.undone());
        }
        true
    });
    denied(refusal, refused_by)
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

/// Calls `step` for the slots from 0 to `limits`, until it returns false.
#[inline(always)]
fn for_each_slot(limits: u32, mut step: impl FnMut(u32) -> bool) {
    // The verifier wants the bound to be a constant.
    for slot in 0..MAX_LIMITS {
        if slot >= limits || !step(slot) {
            return;
        }
    }
}
