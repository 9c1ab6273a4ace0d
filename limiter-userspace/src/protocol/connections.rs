//! The connections that limits count, and whose they are.

use std::{cmp::Ordering, collections::BTreeMap};

use serde::{Deserialize, Serialize};

/// How many owners are told of each limit on connections, at most: those with the most open.
pub const MOST_OWNERS: usize = 20;

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

/// Selects owners of open connections.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct OwnerQuery {
    /// Only those of this limit; `None`: all.
    pub limit: Option<String>,
    /// The most rows to return.
    pub count: u32,
}

/// Those who have the most connections open, as the daemon's last look found them.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct OwnerList {
    /// How many connections are open that a limit counts.
    pub counted: u64,
    /// Nanoseconds since the daemon looked; `None`: none has by the policy in force.
    pub looked_ago_ns: Option<u64>,
    /// The limits on connections, by their names.
    pub limits: BTreeMap<String, OpenByLimit>,
    /// The owners that the query selects, the largest share of what each may have first; at most
    /// [`MOST_OWNERS`] of a limit.
    pub owners: Vec<OwnerStatus>,
}

/// The open connections that a limit counts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpenByLimit {
    /// How many they are.
    pub open: u64,
    /// How many owners have some; `None`: no daemon has looked.
    pub owners: Option<u64>,
}

/// An owner of open connections.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OwnerStatus {
    /// The limit's name.
    pub limit: String,
    /// The address, prefix or subscriber; `total`: everybody.
    pub id: String,
    /// How many connections it has open.
    pub open: u64,
    /// How many it may have, by an override if it has one.
    pub most: u64,
    /// How many clients wait in line for its connections to end; `None`: nobody can.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waiting: Option<u64>,
}

impl OwnerStatus {
    /// Compares the shares that two have open of what they may have.
    #[must_use]
    pub fn share_against(&self, other: &Self) -> Ordering {
        let product = |open: u64, most: u64| u128::from(open) * u128::from(most);
        product(self.open, other.most).cmp(&product(other.open, self.most))
    }
}
