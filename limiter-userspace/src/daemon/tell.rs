//! What the log says of changes of the policy.

use limiter_datapath::kernel::{Attachment, Restored};
use tracing::{info, warn};

/// Says of an interface how it is attached to.
pub(super) fn announce(attachment: &Attachment) {
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

/// Says of limits that they have another strategy than before.
pub(super) fn tell_begun_anew(limits: &[String]) {
    for limit in limits {
        warn!(
            limit,
            "{limit} has another strategy: its buckets begin anew, what was counted is forgotten"
        );
    }
}

pub(super) fn tell_carried(carried: Restored) {
    let Restored { restored, lost, .. } = carried;
    info!(
        restored,
        lost, "the buckets are new ones, and owe what they owed (buckets in debt: {restored})"
    );
    warn_of_lost(lost);
}

/// Says how many buckets begin full that should not.
pub(super) fn warn_of_lost(lost: u64) {
    if lost > 0 {
        warn!(
            lost,
            "`buckets` has changed, and has no room for some buckets that were in debt, or no \
             way to tell whose they are: they begin full (buckets: {lost})"
        );
    }
}
