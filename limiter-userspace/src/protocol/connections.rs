//! The connections that limits count.

use serde::{Deserialize, Serialize};

/// The clients that wait in line for a limit on connections, and those that did since its counters began.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueueStatus {
    /// How many wait now.
    pub waiting: u64,
    /// How many may wait in one owner's line.
    pub size: u64,
    /// How many took a place in line.
    pub queued: u64,
    /// How many waited and then connected.
    pub resumed: u64,
    /// How many waited for longer than the queue's `max-age`, or gave up.
    pub expired: u64,
    /// How often clients tried again that found no place in line.
    pub rejected: u64,
    /// How many of those that connected waited up to a second, up to two, and so on to 512 s; the last:
    /// longer.
    pub waits: Vec<u64>,
    /// How long those that connected waited together, in nanoseconds.
    pub waited_ns: u64,
}

/// The TCP connections open at once.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ConnectionsStatus {
    /// How many are open that a limit counts.
    pub counted: u64,
    /// How many of these have no socket here, but are known to the kernel's connection tracking; `None`:
    /// those are not counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tracked: Option<u64>,
    /// How many a limit did not count, since its counts began, because there was no room.
    pub uncounted: u64,
    /// Why the kernel does not tell of each, so that they are counted once a second; `None`: it does.
    pub error: Option<String>,
}

/// How connections are counted that the kernel's connection tracking knows.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrackingStatus {
    /// Why none are counted anew; `None`: they are.
    pub error: Option<String>,
    /// Why they are counted once a second only; `None`: the kernel tells of each.
    pub late: Option<String>,
}
