//! Says when handshakes cannot be seen.

use limiter_datapath::kernel::Datapath;
use tracing::warn;

/// Warns if handshakes prove nobody, though the policy in force says so.
pub(in crate::daemon) fn warn_of_unseen(datapath: &Datapath) {
    if let Err(why) = datapath.are_handshakes_noted() {
        let why = why.to_string();
        warn!(
            why,
            "HANDSHAKES PROVE NOBODY: {why}; visits, retries, lists and `limiter know` count as \
             before"
        );
    }
}
