//! Diagnosis: each verdict as a log line, in the object that is built with `log`.

use aya_ebpf::programs::XdpContext;
use limiter_common::{decide::Verdict, reason::Action};

#[cfg(not(feature = "log"))]
#[inline(always)]
pub(crate) fn verdict(_context: &XdpContext, _verdict: &Verdict, _action: Action) {}

#[cfg(feature = "log")]
#[inline(always)]
pub(crate) fn verdict(context: &XdpContext, verdict: &Verdict, action: Action) {
    // The name of the reason is the reader's to look up: a string for each would not fit
    // the log record's budget of instructions.
    let reason = verdict.reason as u32;
    match action {
        Action::Pass => aya_log_ebpf::debug!(context, "pass reason={}", reason),
        Action::Drop => aya_log_ebpf::info!(context, "drop reason={}", reason),
    }
}
