//! Tells userspace some questions of refused packets, so that it knows the texts of the names that buckets
//! know by hashes. Nothing is told of a packet that passes.

use core::slice;

use aya_ebpf::{
    bindings::BPF_RB_NO_WAKEUP,
    btf_maps::{PerCpuArray, RingBuf},
    macros::btf_map,
};
use limiter_common::{dns::MOST_BYTES, limit::NamedBy, offender::Sampling};

use crate::names;

/// Starts of messages, each of [`MOST_BYTES`] bytes, of which libbpf must not know: it refuses values of a
/// ring buffer. If it is full, nothing is told: userspace reads it once a second.
#[btf_map]
static REFUSED_QUESTIONS: RingBuf<(), 65536> = RingBuf::new();

#[btf_map]
static SAMPLING: PerCpuArray<Sampling, 1> = PerCpuArray::new();

/// Tells the question of this CPU's present packet, if buckets know it, or its domain, by a hash.
#[inline(always)]
pub(crate) fn tell(named_by: NamedBy, now_ns: u64) {
    if !matches!(named_by, NamedBy::Domain | NamedBy::Question) {
        return;
    }
    let Some(sampling) = SAMPLING.get_ptr_mut(0) else {
        return;
    };
    // SAFETY: this CPU's own element, made of plain numbers; XDP programs do not preempt each other on a
    // CPU.
    if !unsafe { (*sampling).take(now_ns) } {
        return;
    }
    if let Some(message) = names::present() {
        // SAFETY: the message has room for that many bytes, and all of them are written: maps begin as
        // zeros.
        let bytes = unsafe { slice::from_raw_parts(message.place(0), MOST_BYTES) };
        let _ = REFUSED_QUESTIONS.output_untyped::<[u8]>(bytes, u64::from(BPF_RB_NO_WAKEUP));
    }
}
