//! Logs changes of the policy.

use limiter_datapath::kernel::{Attachment, RestoreCounts};
use limiter_policy::policy::diff::DiscardedState;
use tracing::{info, warn};

pub(super) fn log_attached(attachment: &Attachment) {
    let (interface, mode) = (attachment.interface.as_str(), attachment.mode.name());
    match attachment.fell_back.as_deref() {
        None => info!(interface, mode, "attached to {interface} in {mode} mode"),
        Some(reason) => warn!(
            interface,
            mode,
            reason,
            "attached to {interface} in {mode} mode, which is several times slower: the driver \
             refused native mode ({reason})"
        ),
    }
}

/// Logs the limits that have changed their strategy, and whether known sources are forgotten.
pub(super) fn log_begun_anew(begun_anew: &DiscardedState) {
    if let Some(fate) = begun_anew.known_sources {
        warn!(
            "`standing` has changed: the known sources {}",
            fate.meaning()
        );
    }
    for limit in &begun_anew.limits {
        warn!(
            limit,
            "the strategy of {limit} has changed: its buckets begin anew, and earlier counts are \
             forgotten"
        );
    }
}

pub(super) fn log_migrated(migrated: RestoreCounts) {
    let RestoreCounts { restored, lost, .. } = migrated;
    info!(
        restored,
        lost, "the buckets are new and keep their debts (buckets in debt: {restored})"
    );
    warn_of_lost(lost);
}

/// Logs the number of buckets that begin full although they were in debt.
pub(super) fn warn_of_lost(lost: u64) {
    if lost > 0 {
        warn!(
            lost,
            "`buckets` has changed: some buckets in debt begin full, for lack of room or because \
             their key is unknown (buckets: {lost})"
        );
    }
}
