//! The decision: every matching limit is asked; one denial drops the packet and nothing is
//! charged; otherwise all are charged.
//!
//! Two passes. The first only reads: most denials end there, having touched nothing. The
//! second charges each bucket by compare-and-swap, deciding again on the state it swaps
//! out; where another CPU has emptied a bucket in between, what was charged before it is
//! refunded and the packet is dropped. In that window other packets of the same source may
//! be denied that would have passed; none passes that would have been denied.

use crate::{
    bucket::{BucketKey, BucketStore, Updated},
    gcra::{Denied, Gcra},
    limit::{LimitId, MAX_LIMITS},
    packet::{self, Facts, Frame},
    policy::{Class, Tables, classify, parameters},
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
    /// The slot of the limit that dropped the packet: of several that denied, the one to
    /// wait for longest.
    pub denied_by: Option<u32>,
}

impl Verdict {
    #[inline(always)]
    const fn without_limits(reason: Reason) -> Self {
        Self {
            reason,
            matched: 0,
            denied_by: None,
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
    match packet::parse(frame) {
        Ok(facts) => decide_packet(&facts, clock, tables, buckets),
        Err(reason) => Verdict::without_limits(reason),
    }
}

/// What one limit wants of one packet.
struct Charge<'a> {
    key: BucketKey,
    gcra: &'a Gcra,
    cost: u64,
}

/// What the limit in `slot` wants of the packet; `None`: nothing, it does not match.
#[inline(always)]
fn charge<'a, T: Tables>(
    tables: &'a T,
    facts: &Facts,
    class: Class,
    slot: u32,
) -> Option<Charge<'a>> {
    let limit = tables.limit(slot)?;
    let prefix_length = limit.prefix_length(facts.source.family)?;
    let cost = limit.cost_of(facts)?;
    let gcra = parameters(tables, limit, class, slot)?;
    Some(Charge {
        key: BucketKey::new(LimitId(limit.id), facts.source, prefix_length),
        gcra,
        cost,
    })
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
    let class = classify(tables, facts.source);
    let now = clock.now();

    let mut matched = 0;
    let mut strictest = Strictest::NONE;
    for_each_slot(limits, |slot| {
        if let Some(charge) = charge(tables, facts, class, slot) {
            matched |= 1u64 << (slot & 63);
            let tat = buckets.read(&charge.key);
            let spent = charge.gcra.spend(charge.gcra.ticks(now), tat, charge.cost);
            if let Err(denied) = spent {
                strictest.consider(slot, denied, charge.gcra);
            }
        }
        true
    });
    let denied = |reason, slot| Verdict {
        reason,
        matched,
        denied_by: Some(slot),
    };
    if matched == 0 {
        return Verdict::without_limits(Reason::Unlimited);
    }
    if let Some(reason) = strictest.reason {
        return denied(reason, strictest.slot);
    }

    let mut charged = 0;
    let mut refusal = None;
    for_each_slot(limits, |slot| {
        let Some(charge) = charge(tables, facts, class, slot) else {
            return true;
        };
        let ticks = charge.gcra.ticks(now);
        let spend = |tat| charge.gcra.spend(ticks, tat, charge.cost).ok();
        let reason = match buckets.update(&charge.key, spend) {
            Updated::Stored => {
                charged |= 1u64 << (slot & 63);
                return true;
            }
            Updated::Declined => Reason::OverLimit,
            Updated::Contended => Reason::Contended,
            Updated::Unavailable => Reason::BucketUnavailable,
        };
        refusal = Some((reason, slot));
        false
    });
    let Some((reason, slot)) = refusal else {
        return Verdict {
            reason: Reason::WithinLimits,
            matched,
            denied_by: None,
        };
    };
    for_each_slot(limits, |slot| {
        if charged & (1u64 << (slot & 63)) != 0
            && let Some(charge) = charge(tables, facts, class, slot)
        {
            let ticks = charge.gcra.ticks(now);
            // A refund that fails leaves the bucket charged too much, never too little.
            buckets.update(&charge.key, |tat| {
                charge.gcra.refund(ticks, tat, charge.cost)
            });
        }
        true
    });
    denied(reason, slot)
}

/// The strictest denial so far.
struct Strictest {
    reason: Option<Reason>,
    slot: u32,
    wait_ns: u64,
}

impl Strictest {
    const NONE: Self = Self {
        reason: None,
        slot: 0,
        wait_ns: 0,
    };

    #[inline(always)]
    fn consider(&mut self, slot: u32, denied: Denied, gcra: &Gcra) {
        let (reason, wait_ns) = match denied {
            Denied::Wait(ticks) => (Reason::OverLimit, gcra.ns(ticks)),
            Denied::LargerThanBurst => (Reason::LargerThanBurst, u64::MAX),
        };
        if self.reason.is_none() || wait_ns > self.wait_ns {
            *self = Self {
                reason: Some(reason),
                slot,
                wait_ns,
            };
        }
    }
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
