//! The keys that check DNS cookies, and counters of the results.

use aya_ebpf::{
    bindings::BPF_F_RDONLY_PROG,
    btf_maps::{Array, PerCpuArray},
    macros::btf_map,
};
use limiter_common::cookie::{CookieCheck, CookieKeys};

/// The secrets and the wall clock, which only the daemon writes. Only root can read it.
#[btf_map]
static COOKIE_KEYS: Array<CookieKeys, 1, { BPF_F_RDONLY_PROG as usize }> = Array::new();

/// The number of queries by the result of their cookie check, in the order of [`CookieCheck::ALL`].
#[btf_map]
static COOKIE_CHECKS: PerCpuArray<u64, { CookieCheck::COUNT }> = PerCpuArray::new();

#[inline(always)]
pub(super) fn keys() -> CookieKeys {
    match COOKIE_KEYS.get_ptr(0) {
        // SAFETY: the element of the map. Volatile, because userspace writes it meanwhile; any
        // numbers are keys.
        Some(keys) => unsafe { keys.read_volatile() },
        // Never happens: the map has this element.
        None => CookieKeys::NONE,
    }
}

#[inline(always)]
pub(super) fn count(check: CookieCheck) {
    if let Some(counter) = COOKIE_CHECKS.get_ptr_mut(check as u32) {
        // SAFETY: this CPU's own element; XDP programs do not preempt each other on a CPU.
        unsafe { *counter = (*counter).wrapping_add(1) };
    }
}
