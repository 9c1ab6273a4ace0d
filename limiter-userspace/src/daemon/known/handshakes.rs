//! Says when handshakes cannot be seen.

use limiter_datapath::kernel::Datapath;
use tracing::warn;

/// Returns why handshakes prove nobody, though the policy in force says so; `None`: they do, or it
/// does not.
pub(in crate::daemon) fn unseen(datapath: &Datapath) -> Option<String> {
    let noted = datapath.are_handshakes_noted();
    noted.err().map(|error| error.to_string())
}

/// Warns if handshakes prove nobody, though the policy in force says so.
pub(in crate::daemon) fn warn_of_unseen(datapath: &Datapath) {
    if let Some(why) = unseen(datapath) {
        warn!(
            why,
            "handshakes CANNOT BE SEEN, and prove nobody: {why}; visits, retries, lists and \
             `limiter know` count as before"
        );
    }
}
