//! Diagnosis: writes each verdict as a log line, in the object built with `log`.

#[cfg(feature = "log")]
use aya_ebpf::programs::XdpContext;
use limiter_common::{decide::Verdict, reason::Action};

/// Logs a verdict and the action on it; returns the action.
#[cfg(not(feature = "log"))]
#[inline(always)]
pub(crate) fn verdict(_verdict: &Verdict, action: Action) -> Action {
    action
}

/// Logs a verdict and the action on it; returns the action.
#[cfg(feature = "log")]
#[inline(always)]
pub(crate) fn verdict(verdict: &Verdict, action: Action) -> Action {
    if limiter_log(verdict.reason as u32, action as u32) == Action::Pass as u32 {
        Action::Pass
    } else {
        Action::Drop
    }
}

/// Logs a reason and an action by their numbers; returns the action. It is a global function of the
/// BPF object, with its own stack.
///
/// Verifiers before Linux 6.5 cannot trace a known number back across a call: where a branch
/// depends on one, they treat every number as important, and walk all later code once for each set
/// of numbers. The number that this function returns is unknown to them.
#[cfg(feature = "log")]
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn limiter_log(reason: u32, action: u32) -> u32 {
    const PASS: u32 = Action::Pass as u32;
    // The macros need a context but do not read it.
    let context = &XdpContext::new(core::ptr::null_mut());
    // The reader looks up the reason's name: a string for each reason would take more instructions
    // than a stage may have.
    if action == PASS {
        aya_log_ebpf::debug!(context, "pass reason={}", reason);
    } else {
        aya_log_ebpf::info!(context, "drop reason={}", reason);
    }
    action
}
