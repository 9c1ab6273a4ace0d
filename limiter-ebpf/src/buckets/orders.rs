//! What userspace has done to buckets. A daemon may be killed at any moment, and a program is not:
//! so the kernel does it, by a program of its own, and no packet pays for it.

use aya_ebpf::programs::XdpContext;
use limiter_common::{
    bucket::{ATTEMPTS, Updated},
    table::{self as core_table, EVICTED, IN_ANOTHER_UNIT, Order, OrderKind, Spot, WAYS},
};

use super::{
    Charge, Found, SPEND, hash, in_table, limiter_change, limiter_change_hash, limiter_exchange,
    limiter_exchange_hash, limiter_read_hash, limiter_update, table, workspace,
};

/// Carries out the order that the frame is; returns how it ended, as
/// [`EVICTED`](limiter_common::table::EVICTED) has it.
#[inline(always)]
pub(crate) fn carry_out(context: &XdpContext) -> u32 {
    let start = context.data();
    if start + size_of::<Order>() > context.data_end() {
        return Updated::Unavailable as u32;
    }
    // SAFETY: as many bytes are there, any of which are an order. They start a page's fraction of
    // 256 bytes behind its beginning, and nobody writes to them.
    let order = unsafe { &*(start as *const Order) };
    // Not on the stack, which is for the functions below. No packet has the workspace meanwhile: the
    // kernel lets none in on a CPU that runs an order.
    let Some(workspace) = workspace() else {
        return Updated::Unavailable as u32;
    };
    let charge = workspace.charge(0);
    *charge = Charge {
        found: Found {
            key: order.key,
            spot: Spot {
                name: order.name,
                line: order.line,
                // Older verifiers forget a comparison with what lies on the stack: so the bound is
                // part of the number. Userspace orders no way that is not there.
                way: order.way as usize % WAYS,
            },
        },
        spend: order.spend,
        seen: order.seen,
        now_ns: order.now_ns,
        changed: 0,
        stamp_unit: 0,
        reserved: 0,
    };
    let before = table::lossy_evictions();
    let ended = match OrderKind::of_number(order.kind) {
        Some(OrderKind::Spend) => limiter_update(&raw const *charge, SPEND),
        Some(OrderKind::SpendIfThere) => limiter_update_if_there(&raw const *charge),
        Some(OrderKind::GiveBack) => limiter_give_back(&raw mut *charge),
        Some(OrderKind::Clear) => limiter_clear(&raw const *charge),
        Some(OrderKind::Mark) if in_table() => table::mark(&charge.found.spot) as u32,
        Some(OrderKind::Free) if in_table() => table::free(&charge.found.spot, charge.seen) as u32,
        _ => Updated::Unavailable as u32,
    };
    if table::lossy_evictions() == before {
        ended
    } else {
        ended | EVICTED
    }
}

/// As [`limiter_update`], but puts no bucket in.
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn limiter_update_if_there(charge: *const Charge) -> u32 {
    let updated = if in_table() {
        core_table::update(
            || limiter_change(charge, SPEND),
            || limiter_is_missing(charge),
            || limiter_exchange(charge, SPEND),
        )
    } else {
        core_table::update(
            || limiter_change_hash(charge, SPEND),
            || limiter_is_missing(charge),
            || limiter_exchange_hash(charge, SPEND),
        )
    };
    updated as u32
}

/// In place of the step that puts the bucket in.
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn limiter_is_missing(charge: *const Charge) -> u32 {
    // SAFETY: the verifier lets a caller pass null or a whole readable value, nothing else.
    let is_there = match unsafe { charge.as_ref() } {
        Some(charge) if in_table() => table::is_there(&charge.found.spot),
        Some(charge) => hash::is_there(&charge.found),
        None => false,
    };
    if is_there {
        IN_ANOTHER_UNIT
    } else {
        // A missing bucket is a full bucket.
        Updated::Stored as u32
    }
}

/// Gives back what the charge's spend says, however many CPUs are at the bucket. The spend becomes
/// that which did it: a copy of the charge would take more stack than there is.
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn limiter_give_back(charge: *mut Charge) -> u32 {
    // SAFETY: as in `limiter_is_missing`; the caller does not use it meanwhile.
    let Some(charge) = (unsafe { charge.as_mut() }) else {
        return Updated::Unavailable as u32;
    };
    let refund = charge.spend;
    for _ in 0..ATTEMPTS {
        let seen = if in_table() {
            table::read(&charge.found.spot)
        } else {
            limiter_read_hash(&raw const charge.found)
        };
        // In another unit it looks full, and then counts in this one when it is looked at again.
        charge.spend.set_swap(seen, refund.refunded(seen));
        let ended = limiter_update_if_there(&raw const *charge);
        if ended != Updated::Declined as u32 {
            return ended;
        }
    }
    Updated::Contended as u32
}

/// Fills the bucket of exactly the charge's name.
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn limiter_clear(charge: *const Charge) -> u32 {
    // SAFETY: as in `limiter_is_missing`.
    let updated = match unsafe { charge.as_ref() } {
        Some(charge) if in_table() => table::clear(&charge.found.spot),
        Some(charge) => hash::clear(&charge.found),
        None => Updated::Unavailable,
    };
    updated as u32
}
