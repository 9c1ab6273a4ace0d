//! What is enforced, where, and how the daemon is.

use std::{collections::BTreeMap, net::SocketAddr, path::PathBuf};

use jiff::Timestamp;
use limiter_common::counters::{LimitTraffic, Traffic};
use limiter_policy::{
    config::{Bans, Buckets, Offenders},
    lists::ListStatus,
    policy::FlatMetrics,
};
use serde::{Deserialize, Serialize};

use super::{reload::History, sieves::SieveBrief};

/// What is enforced, where, and what was counted.
#[derive(Debug, Serialize, Deserialize)]
pub struct Status {
    /// The interfaces.
    pub interfaces: Vec<InterfaceStatus>,
    /// The policy.
    pub policy: PolicyStatus,
    /// Where the buckets are.
    pub buckets: BucketsStatus,
    /// How many of those who were dropped are remembered.
    pub offenders: Offenders,
    /// How many addresses and ranges are banned.
    pub bans: BansStatus,
    /// Where all of it is pinned; `None`: it ends with the daemon.
    pub pinned: Option<PathBuf>,
    /// The daemon; `None`: none is running, what is pinned is enforced.
    pub daemon: Option<DaemonStatus>,
    /// Packets by reason, over all interfaces.
    pub reasons: BTreeMap<String, u64>,
    /// What each limit did.
    pub limits: BTreeMap<String, LimitStatus>,
    /// The lists.
    pub lists: Vec<ListStatus>,
    /// The sieves.
    #[serde(default)]
    pub sieves: Vec<SieveBrief>,
}

/// The daemon.
#[derive(Debug, Serialize, Deserialize)]
pub struct DaemonStatus {
    /// Where Prometheus finds the metrics; `None`: nowhere.
    pub metrics: Option<SocketAddr>,
    /// The state file; `None`: nothing is kept.
    pub state: Option<StateStatus>,
    /// How often the configuration was read again, and what came of it.
    pub reloads: History,
    /// Whether it is known whom not to ban.
    #[serde(default)]
    pub guard: GuardStatus,
}

/// The guard, which speaks for those whom nobody is to ban.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct GuardStatus {
    /// Since when it can tell whom not to ban, or cannot.
    pub since: Timestamp,
    /// Why it cannot, so that nobody is banned automatically; `None`: it can.
    pub error: Option<String>,
    /// When it could the last time; `None`: never since the daemon was started.
    pub answered_at: Option<Timestamp>,
    /// How many addresses there were then, without those of `never-ban`.
    pub protected: usize,
    /// Whether anybody on this machine writes down who has logged in.
    pub sessions_recorded: bool,
}

/// One interface.
#[derive(Debug, Serialize, Deserialize)]
pub struct InterfaceStatus {
    /// Its name.
    pub name: String,
    /// `native` or `generic`; `None`: it was never there.
    pub mode: Option<String>,
    /// Whether the program is on it now; it is again when one that has vanished appears.
    pub attached: bool,
    /// What it is called now, if that is another name.
    #[serde(default)]
    pub renamed: Option<String>,
    /// Whether it is in another network namespace now.
    #[serde(default)]
    pub elsewhere: bool,
    /// Whether another interface has the name now, which is not limited yet.
    #[serde(default)]
    pub replaced: bool,
    /// When the program was attached.
    pub since: Option<Timestamp>,
    /// Why native mode was not had, when it was wished for.
    pub fell_back: Option<String>,
}

/// The policy in force.
#[derive(Debug, Serialize, Deserialize)]
pub struct PolicyStatus {
    /// Counts the policies that were in force, from 1: since the daemon runs, or since they are
    /// pinned.
    pub generation: u64,
    /// When it was loaded.
    pub loaded_at: Timestamp,
    /// How many limits it has.
    pub limits: usize,
    /// How many overrides they have.
    pub overrides: usize,
    /// What is done to malformed packets: `drop` or `pass`.
    pub malformed: String,
}

/// Where the buckets are.
#[derive(Debug, Serialize, Deserialize)]
pub struct BucketsStatus {
    /// In which store, how many there may be, and what happens beyond.
    #[serde(flatten)]
    pub settings: Buckets,
    /// Buckets in debt that the table forgot for want of room; the hash map does not tell.
    pub lossy_evictions: u64,
}

/// How many addresses and ranges are banned.
#[derive(Debug, Serialize, Deserialize)]
pub struct BansStatus {
    /// How many there may be.
    #[serde(flatten)]
    pub settings: Bans,
    /// How many IPv4 addresses and ranges are.
    pub ipv4: u32,
    /// How many IPv6 addresses and ranges are.
    pub ipv6: u32,
}

/// The state file.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct StateStatus {
    /// Its path.
    pub file: PathBuf,
    /// When it was last saved; `None`: not since the daemon was started.
    pub saved_at: Option<Timestamp>,
    /// How many buckets in debt it has since.
    pub buckets: u64,
    /// How many bans it has since, also those that have ended and are remembered.
    pub bans: u64,
    /// How often it could not be saved since the daemon was started.
    pub errors: u64,
    /// Why it could not be saved the last time; `None`: it could.
    pub error: Option<String>,
}

/// What one limit did to the packets it matched.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct LimitStatus {
    /// `enforce`, `observe` or `off`.
    pub mode: String,
    /// By which rule it counts.
    pub strategy: String,
    /// Packets charged and passed.
    pub passed_packets: u64,
    /// Bytes of those.
    pub passed_bytes: u64,
    /// Packets dropped by this limit.
    pub dropped_packets: u64,
    /// Bytes of those.
    pub dropped_bytes: u64,
    /// Packets that it would have dropped, if it did more than observe.
    pub would_drop_packets: u64,
    /// Bytes of those.
    pub would_drop_bytes: u64,
    /// What the names of its metrics are made of in Traffic Server; `None`: it has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metrics: Option<FlatMetrics>,
}

impl From<&LimitStatus> for LimitTraffic {
    fn from(status: &LimitStatus) -> Self {
        let traffic = |packets, bytes| Traffic { packets, bytes };
        Self {
            passed: traffic(status.passed_packets, status.passed_bytes),
            dropped: traffic(status.dropped_packets, status.dropped_bytes),
            would_drop: traffic(status.would_drop_packets, status.would_drop_bytes),
        }
    }
}
