//! The open connections that limits count, by key.

use std::{cmp::Ordering, collections::BTreeMap};

use serde::{Deserialize, Serialize};

/// The most keys per limit in a [`KeyList`].
pub const MOST_KEYS: usize = 20;

/// The clients waiting in line for a limit on connections, now and since its counters began.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueueStatus {
    /// How many wait now.
    pub waiting: u64,
    /// The most that may wait in one key's line.
    pub size: u64,
    /// How many took a ticket.
    pub queued: u64,
    /// How many waited and then connected.
    pub resumed: u64,
    /// How many waited for longer than the queue's `max-age`, or gave up.
    pub expired: u64,
    /// How many attempts of clients found no ticket.
    pub rejected: u64,
    /// Clients that connected, by the time they waited: up to 1 s, up to 2 s, and so on to 512 s; the last:
    /// longer.
    pub waits: Vec<u64>,
    /// The summed waiting time of clients that connected, in nanoseconds.
    pub waited_ns: u64,
}

/// The TCP connections open at once.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ConnectionsStatus {
    /// How many open connections limits count.
    pub counted: u64,
    /// How many of the counted connections have no socket here, but are known to the kernel's connection
    /// tracking; `None`: tracked connections are not counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tracked: Option<u64>,
    /// How many connections a limit could not count for lack of room, since its counts began.
    pub uncounted: u64,
    /// Why the kernel does not report each connection, so that the daemon counts them once a second; `None`: it
    /// does.
    pub error: Option<String>,
}

/// Status of counting connections known to the kernel's connection tracking.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrackingStatus {
    /// Why the counts are not updated; `None`: they are.
    pub error: Option<String>,
    /// Why connections are counted only once a second; `None`: the kernel reports each.
    pub late: Option<String>,
}

/// Selects keys of open connections.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct KeyQuery {
    /// Only keys of this limit; `None`: of all.
    pub limit: Option<String>,
    /// The most rows to return.
    pub count: u32,
}

/// The keys with the most open connections, as of the daemon's last poll.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct KeyList {
    /// How many open connections limits count.
    pub counted: u64,
    /// Nanoseconds since the daemon polled; `None`: it has not yet under the policy in force.
    pub polled_ago_ns: Option<u64>,
    /// The limits on connections, by their names.
    pub limits: BTreeMap<String, OpenByLimit>,
    /// The selected keys, sorted by the share of their maximum that is open, largest first; at most
    /// [`MOST_KEYS`] of a limit.
    pub keys: Vec<KeyStatus>,
}

/// The open connections that a limit counts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpenByLimit {
    /// How many connections are open.
    pub open: u64,
    /// How many keys have open connections; `None`: no daemon has polled.
    pub keys: Option<u64>,
}

/// A key with open connections.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyStatus {
    /// The limit's name.
    pub limit: String,
    /// The address, prefix or subscriber; `total`: the bucket for all clients.
    pub id: String,
    /// How many connections it has open.
    pub open: u64,
    /// How many it may have open; an override counts.
    pub most: u64,
    /// How many clients wait in line for its connections to end; `None`: the limit has no queue.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waiting: Option<u64>,
}

impl KeyStatus {
    /// Compares two keys by open connections per allowed connection.
    #[must_use]
    pub fn compare_use(&self, other: &Self) -> Ordering {
        let product = |open: u64, most: u64| u128::from(open) * u128::from(most);
        product(self.open, other.most).cmp(&product(other.open, self.most))
    }
}
