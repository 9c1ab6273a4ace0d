//! Diagnosis: each verdict as a log line, in the object that is built with `log`.

#[cfg(feature = "log")]
use aya_ebpf::programs::XdpContext;
use limiter_common::{decide::Verdict, reason::Action};

#[cfg(not(feature = "log"))]
#[inline(always)]
pub(crate) fn verdict(_verdict: &Verdict, _action: Action) {}

#[cfg(feature = "log")]
#[inline(always)]
pub(crate) fn verdict(verdict: &Verdict, action: Action) {
    limiter_log(verdict.reason as u32, action as u32);
}

/// Logs a reason and an action by their numbers; returns 0. A global function of the BPF object,
/// whose stack is its own.
#[cfg(feature = "log")]
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn limiter_log(reason: u32, action: u32) -> u32 {
    const PASS: u32 = Action::Pass as u32;
    // The macros want a context and read nothing of it.
    let context = &XdpContext::new(core::ptr::null_mut());
    // The name of the reason is the reader's to look up: a string for each would not fit
    // the log record's budget of instructions.
    if action == PASS {
        aya_log_ebpf::debug!(context, "pass reason={}", reason);
    } else {
        aya_log_ebpf::info!(context, "drop reason={}", reason);
    }
    0
}
