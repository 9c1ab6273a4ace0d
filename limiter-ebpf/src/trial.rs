//! The program on trial, attached to no hook: the loader sets its clock and reads its verdict.
//!
//! A live program contains no trace of this, because [`globals::ON_TRIAL`] is a constant.

use aya_ebpf::{bindings::BPF_F_RDONLY_PROG, btf_maps::Array, macros::btf_map};
use limiter_common::{answer::AssumedSocket, decide::Verdict, packet::TcpState};

use crate::globals;

/// The time, in nanoseconds.
#[btf_map]
static TRIAL_CLOCK: Array<u64, 1, { BPF_F_RDONLY_PROG as usize }> = Array::new();

/// 1: listening sockets have room for SYNs; 0: they are full.
#[btf_map]
static TRIAL_ROOM: Array<u32, 1, { BPF_F_RDONLY_PROG as usize }> = Array::new();

/// The number of the [`TcpState`] to assume for segments that begin no connection.
#[btf_map]
static TRIAL_TCP_STATE: Array<u32, 1, { BPF_F_RDONLY_PROG as usize }> = Array::new();

#[btf_map]
static TRIAL_VERDICT: Array<Verdict, 1> = Array::new();

/// Whether the program is on trial.
#[inline(always)]
pub(crate) fn is_on() -> bool {
    globals::ON_TRIAL.load() != 0
}

/// The time that the loader set; `None`: use the kernel's clock.
#[inline(always)]
pub(crate) fn now() -> Option<u64> {
    if is_on() {
        Some(TRIAL_CLOCK.get(0).copied().unwrap_or(0))
    } else {
        None
    }
}

/// The state to assume for listening sockets.
#[inline(always)]
pub(crate) fn socket() -> AssumedSocket {
    match TRIAL_ROOM.get(0) {
        Some(1) => AssumedSocket::HasRoom,
        _ => AssumedSocket::Full,
    }
}

/// The state to assume for segments that begin no connection.
#[inline(always)]
pub(crate) fn tcp_state() -> TcpState {
    TcpState::of_number(TRIAL_TCP_STATE.get(0).copied().unwrap_or(u32::MAX))
}

/// Writes the verdict for the loader.
#[inline(always)]
pub(crate) fn report(verdict: &Verdict) {
    if is_on()
        && let Some(last) = TRIAL_VERDICT.get_ptr_mut(0)
    {
        // SAFETY: the element is as large as a verdict and stays mapped. Concurrent trials
        // overwrite each other's verdicts; a single one reads its own.
        unsafe { last.write(*verdict) };
    }
}
