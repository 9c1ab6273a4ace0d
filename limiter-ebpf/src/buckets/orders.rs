//! Orders from userspace to change buckets. A daemon may be killed at any moment, a program cannot be, so a separate
//! kernel program carries them out, at no cost to packets.

use aya_ebpf::programs::XdpContext;
use limiter_common::{
    bucket::{BucketTable as _, Decide, Ending, Transition, UpdateOutcome},
    strategy::Spend,
    table::{EVICTED, Order, OrderKind, TableLocation},
};

use super::{BucketLocation, MapBuckets, hash, in_table, table};

/// Carries out the order passed in place of the frame; returns the result in the form of
/// [`EVICTED`](limiter_common::table::EVICTED).
#[inline(always)]
pub(crate) fn carry_out(context: &XdpContext) -> u32 {
    let start = context.data();
    if start + size_of::<Order>() > context.data_end() {
        return UpdateOutcome::Unavailable as u32;
    }
    // SAFETY: the frame has enough bytes, and any bytes are an order. They start 256 bytes after the beginning of a
    // page, and no code writes to them.
    let order = unsafe { &*(start as *const Order) };
    let mut location = BucketLocation {
        key: order.key,
        table: TableLocation {
            fingerprint: order.fingerprint,
            line: order.line,
            ..TableLocation::default()
        },
    };
    let before = table::lossy_evictions();
    let updated = match OrderKind::of_number(order.kind) {
        OrderKind::Spend | OrderKind::Swap | OrderKind::GiveBack => update(order, &mut location),
        OrderKind::Clear if in_table() => table::clear(&location.table),
        OrderKind::Clear => hash::clear(&location),
        OrderKind::Unknown => UpdateOutcome::Unavailable,
    };
    let ended = updated as u32;
    if table::lossy_evictions() == before {
        ended
    } else {
        ended | EVICTED
    }
}

/// Changes the bucket by an order that depends on the bucket's state.
#[inline(always)]
fn update(order: &Order, location: &mut BucketLocation) -> UpdateOutcome {
    let mut change = Change {
        spend: order.spend,
        seen: order.seen,
        wanted: order.wanted,
        now_ns: order.now_ns,
        kind: order.kind,
        ending: 0,
    };
    UpdateOutcome::of_number(limiter_change(&raw mut *location, &raw mut change))
}

/// Changes a bucket; returns the number of an [`UpdateOutcome`].
///
/// It is a global function of the BPF object: the verifier walks it once, for any arguments.
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn limiter_change(location: *mut BucketLocation, change: *mut Change) -> u32 {
    // SAFETY: the verifier lets a caller pass null or a whole value, nothing else; both values are on the caller's
    // stack, and the caller does not use them meanwhile.
    let (Some(location), Some(change)) = (unsafe { (location.as_mut(), change.as_mut()) }) else {
        return UpdateOutcome::Unavailable as u32;
    };
    let now_ns = change.now_ns;
    MapBuckets::<true>.update(location, now_ns, change) as u32
}

/// The change of an order, copied from the packet, because a call may invalidate the packet.
#[repr(C)]
struct Change {
    spend: Spend,
    seen: u64,
    wanted: u64,
    now_ns: u64,
    /// The number of an [`OrderKind`].
    kind: u32,
    /// The result of [`limiter_decide_order`]: the number of an [`Ending`].
    ending: u32,
}

impl Decide<BucketLocation> for Change {
    #[inline(always)]
    fn decide(&mut self, location: &BucketLocation, state: u64) -> Transition {
        // The bucket may exist in another unit, and so look full.
        if state == 0 && exchange(location, self.now_ns) {
            return Transition::leave(state, Ending::Again);
        }
        let state = limiter_decide_order(self, state);
        Transition {
            state,
            ending: Ending::of_number(self.ending),
        }
    }
}

/// Decides on a bucket's new state and returns it; stores the ending in `change`.
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn limiter_decide_order(change: *mut Change, state: u64) -> u64 {
    // SAFETY: the verifier lets a caller pass null or a whole value, nothing else; the value is on
    // the caller's stack, and the caller does not use it meanwhile.
    let Some(change) = (unsafe { change.as_mut() }) else {
        return state;
    };
    let Change {
        spend,
        seen,
        wanted,
        ..
    } = *change;
    let decided = match OrderKind::of_number(change.kind) {
        OrderKind::Swap if state == wanted => Transition::leave(state, Ending::Stored),
        OrderKind::Swap if state == seen => Transition {
            state: wanted,
            ending: Ending::Stored,
        },
        OrderKind::Spend => {
            let decision = spend.gcra().decide(state);
            Transition {
                state: decision.state,
                ending: if decision.passes() {
                    Ending::Stored
                } else {
                    Ending::Declined
                },
            }
        }
        OrderKind::GiveBack => Transition {
            state: spend.refunded(state),
            ending: Ending::GivenBack,
        },
        _ => Transition::leave(state, Ending::Declined),
    };
    change.ending = decided.ending as u32;
    decided.state
}

/// Exchanges the bucket to the unit of its fingerprint, if it exists in another one; returns whether to read it again.
#[inline(always)]
fn exchange(location: &BucketLocation, now_ns: u64) -> bool {
    let changed = if in_table() {
        table::limiter_exchange(location, now_ns)
    } else {
        hash::limiter_exchange_hash(location, now_ns)
    };
    changed == 1
}
