//! Reports some questions of refused packets to userspace, which learns from them the texts of names that buckets know
//! only by hash. Passing packets are never reported.

use core::slice;

use aya_ebpf::{
    bindings::BPF_RB_NO_WAKEUP,
    btf_maps::{PerCpuArray, RingBuf},
    macros::btf_map,
};
use limiter_common::{dns::MOST_BYTES, limit::KeyPart, offender::Sampling};

use crate::names;

/// Starts of messages, each of [`MOST_BYTES`] bytes. The type hides them from libbpf, which refuses values of a ring
/// buffer. If the buffer is full, questions are skipped: userspace reads it once a second.
#[btf_map]
static REFUSED_QUESTIONS: RingBuf<(), 65536> = RingBuf::new();

#[btf_map]
static SAMPLING: PerCpuArray<Sampling, 1> = PerCpuArray::new();

/// Reports the question of this CPU's current packet, if buckets know it or its domain by hash.
#[inline(always)]
pub(crate) fn report(key_part: KeyPart, now_ns: u64) {
    if !matches!(key_part, KeyPart::Domain | KeyPart::Question) {
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
        let bytes = unsafe { slice::from_raw_parts(message.pointer_at(0), MOST_BYTES) };
        let _ = REFUSED_QUESTIONS.output_untyped::<[u8]>(bytes, u64::from(BPF_RB_NO_WAKEUP));
    }
}
