//! The last time at which a key had no room for another connection.

use aya_ebpf::{btf_maps::Array, macros::btf_map};
use limiter_common::{
    clock::Clock as _,
    connection::{self, Ends, crowding},
};

use super::{are_counted, counts};
use crate::{buckets::atomic, clock::KernelClock, tables::MapTables};

/// The time, in nanoseconds; 0: never.
#[btf_map]
static FULL_AT: Array<u64, 1> = Array::new();

/// Calls [`crowding::may_overshoot`].
#[inline(always)]
pub(super) fn may_overshoot(now_ns: u64) -> bool {
    match FULL_AT.get_ptr_mut(0) {
        // SAFETY: the map's element, an aligned word that is only changed atomically.
        Some(word) => crowding::may_overshoot(unsafe { atomic::load(word) }, now_ns),
        // Never happens: the map has this element.
        None => true,
    }
}

/// Stores the time if the peer of a counted connection has no room for another.
#[inline(always)]
pub(super) fn record_full(ends: &Ends) {
    if limiter_full_for(ends) != 0
        && let Some(word) = FULL_AT.get_ptr_mut(0)
    {
        // SAFETY: as above.
        unsafe { atomic::store(word, KernelClock.now()) };
    }
}

/// Calls [`connection::full_for`].
///
/// It is a global function of the BPF object: the verifier walks it once, for any arguments.
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn limiter_full_for(ends: *const Ends) -> u64 {
    // SAFETY: the verifier lets a caller pass null or a whole value, nothing else; it is the caller's.
    match unsafe { ends.as_ref() } {
        Some(ends) if are_counted() => connection::full_for(&MapTables, ends, counts::open),
        _ => 0,
    }
}
