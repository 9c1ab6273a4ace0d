//! The connections that limits count.

use serde::{Deserialize, Serialize};

/// The TCP connections open at once.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ConnectionsStatus {
    /// How many are open that a limit counts.
    pub counted: u64,
    /// How many a limit did not count, since its counts began, because there was no room.
    pub uncounted: u64,
    /// Why the kernel does not tell of each, so that they are counted once a second; `None`: it does.
    pub error: Option<String>,
}
