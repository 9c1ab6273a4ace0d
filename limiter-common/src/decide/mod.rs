//! The decision: every matching limit is asked; one denial drops the packet and nothing is
//! charged; otherwise all are charged. But a fixed window counts what it refuses itself.
//!
//! Two passes. The first only reads: most denials end there, having touched nothing. The
//! second charges each bucket by compare-and-swap, from the state that the first has seen, or
//! else deciding again on the one that it finds; where another CPU has emptied a bucket in
//! between, what was charged before it is refunded and the packet is dropped. In that window other
//! packets of the same source may be denied that would have passed; none passes that would have
//! been denied.
//!
//! Before any limit is asked comes what is known of the source, the strongest word first: it is
//! excluded, and passes; or blocked, or banned, or blocked by a limit that counts the packet, or
//! too busy under pressure, and is dropped.
//!
//! Limits that only observe come after the others, on packets that those let pass, each by
//! itself: Boulder's spend-only transactions.

mod charging;
mod strictest;
mod verdict;
mod window;

pub use self::charging::{charge, observe, prepare};
pub(crate) use self::{strictest::Strictest, window::Steps};
pub use self::{
    verdict::Verdict,
    window::{WindowChange, change_window, decide_window},
};
use crate::{
    bucket::BucketStore,
    charge::{Packet, Workspace},
    offender::{Dropper, OffenderStore},
    packet::{Facts, Headers},
    policy::{Class, Tables, classify, matching},
    reason::Reason,
    reputation::Reputation,
};

/// The time.
pub trait Clock {
    /// Nanoseconds since any fixed moment, the same for all CPUs but for microseconds.
    fn now(&self) -> u64;
}

/// Decides on a frame, charging the buckets it is to be charged to, or recording the limit or the
/// sieve that drops it.
#[inline(always)]
pub fn decide<H, C, T, B, O, R>(
    headers: &H,
    clock: &C,
    tables: &T,
    buckets: &B,
    offenders: &O,
    reputation: &R,
    workspace: &mut Workspace<B::Found>,
) -> Verdict
where
    H: Headers,
    C: Clock,
    T: Tables,
    B: BucketStore,
    O: OffenderStore,
    R: Reputation,
{
    let mut facts = Facts::NONE;
    let mut parsed = headers.parse(&mut facts);
    if parsed.is_err()
        && let Some(again) = headers.parse_all(&mut workspace.packet.facts)
    {
        parsed = again;
        facts = workspace.packet.facts;
    }
    if let Err(reason) = parsed {
        return Verdict::without_limits(reason);
    }
    let Some(class) = classify(tables, &facts.source) else {
        return Verdict::without_limits(Reason::Unlimited);
    };
    match class.standing {
        Class::EXCLUDED => return Verdict::without_limits(Reason::Excluded),
        Class::BLOCKED => return Verdict::without_limits(Reason::BlockedList),
        _ => {}
    }
    if reputation.is_banned(&facts.source, clock) {
        return Verdict::without_limits(Reason::Banned);
    }
    let shape = tables.shape();
    let matched = matching(tables, &facts, class);
    if matched == 0 && shape.sieve_uses == 0 {
        return Verdict::without_limits(Reason::Unlimited);
    }
    let packet = Packet {
        facts,
        class: *class,
        now: clock.now(),
    };
    workspace.begin(packet, matched);
    if class.standing != 0 && workspace.verdict.block(tables, class.standing) {
        return workspace.verdict;
    }
    if shape.sieve_uses != 0 && reputation.sift(tables, &workspace.packet, &mut workspace.verdict) {
        let slot = workspace.verdict.denied_by;
        offenders.record(tables, &workspace.packet, slot, Dropper::Sieve);
        return workspace.verdict;
    }
    buckets.charge(tables, workspace);
    if let Some(slot) = workspace.verdict.denied_by() {
        offenders.record(tables, &workspace.packet, slot, Dropper::Budget);
    } else if shape.observing != 0 {
        buckets.observe(tables, workspace);
    }
    workspace.verdict
}
