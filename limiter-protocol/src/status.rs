//! The status of the limiter: the enforced policy, the interfaces, the counters and the daemon.

use std::{collections::BTreeMap, net::SocketAddr, path::PathBuf};

use jiff::Timestamp;
use limiter_common::{
    counters::{LimitTraffic, Traffic},
    reason::Action,
};
use limiter_policy::{
    config::{Bans, Buckets, ListenAddress, Offenders},
    lists::ListStatus,
    policy::{FlatMetrics, Mode, Rate},
};
use serde::{Deserialize, Serialize};

use super::{
    automatic_rate::AutomaticRate,
    connections::{ConnectionsStatus, QueueStatus, TrackingStatus},
    fleet::FleetBrief,
    reload::History,
    sieves::SieveBrief,
    standing::StandingStatus,
};

/// The enforced policy, the interfaces and the counters.
#[derive(Debug, Serialize, Deserialize)]
pub struct Status {
    /// The interfaces.
    pub interfaces: Vec<InterfaceStatus>,
    /// The patterns of interface names in force; the program is attached to matching interfaces while they
    /// exist.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub patterns: Vec<String>,
    /// The policy.
    pub policy: PolicyStatus,
    /// The buckets.
    pub buckets: BucketsStatus,
    /// The settings of the record of offenders.
    pub offenders: Offenders,
    /// How many addresses and ranges are banned.
    pub bans: BansStatus,
    /// The directory of the pins; `None`: enforcement ends with the daemon.
    pub pinned: Option<PathBuf>,
    /// A lost pin of an object in force; `None`: all are there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lost_pin: Option<PathBuf>,
    /// The daemon; `None`: no daemon runs, but pinned programs enforce the policy.
    pub daemon: Option<DaemonStatus>,
    /// Packets by reason, over all interfaces.
    pub reasons: BTreeMap<String, u64>,
    /// The traffic of each limit.
    pub limits: BTreeMap<String, LimitStatus>,
    /// The lists.
    pub lists: Vec<ListStatus>,
    /// The sieves.
    pub sieves: Vec<SieveBrief>,
    /// The traffic of sources of each standing; `None`: no limit uses standing.
    pub standing: Option<StandingStatus>,
    /// The connections that limits count; `None`: none limits them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connections: Option<ConnectionsStatus>,
    /// Why this host's own connections are limited like others, though they should be exempt; `None`: they are
    /// treated as configured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub own_connections_error: Option<String>,
    /// The outcomes of connections and QUIC flows under limits on server names; `None`: there are no such
    /// limits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server_names: Option<ServerNamesStatus>,
    /// Why connections get no server names, though limits count by them; `None`: they do, or no limit needs
    /// them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server_names_error: Option<String>,
}

/// Connections under limits on server names.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerNamesStatus {
    /// Connections for which the daemon read a name.
    pub named: u64,
    /// Connections without a name, by the reason.
    pub nameless: BTreeMap<String, u64>,
    /// Segments, possibly with the first bytes of a connection, that the daemon did not read, by the reason.
    pub segments_lost: BTreeMap<String, u64>,
    /// QUIC flows.
    #[serde(default)]
    pub quic: QuicNamesStatus,
}

/// QUIC flows under limits on server names.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct QuicNamesStatus {
    /// QUIC flows for which the daemon read a name.
    pub named: u64,
    /// Datagrams that gave no name, by the reason. A later datagram of the flow may give it.
    pub nameless: BTreeMap<String, u64>,
    /// Datagrams, possibly with a name, that the daemon did not read, by the reason.
    pub datagrams_lost: BTreeMap<String, u64>,
}

/// The daemon.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct DaemonStatus {
    /// Where metrics are served to Prometheus; `None`: nowhere.
    pub metrics: Option<SocketAddr>,
    /// The names under which clients may ask for them, besides its address and `localhost`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub metrics_hosts: Vec<String>,
    /// Where the page is; `None`: nowhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub page: Option<PageStatus>,
    /// The group with access to read requests; `None`: only root has access.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// The state file; `None`: there is none.
    pub state: Option<StateStatus>,
    /// The reloads of the configuration and their results.
    pub reloads: History,
    /// The state of the guard, which decides which addresses must not be banned.
    pub guard: GuardStatus,
    /// Why no limit sends answers, though its `deny` asks for them; `None`: they do.
    pub no_answers: Option<String>,
    /// Why answers through an interface are lost or may be; keyed by the interface's name.
    pub lost_answers: BTreeMap<String, String>,
    /// Why the policy in force does not fit an interface in its present state; keyed by the interface's name.
    #[serde(default)]
    pub misfits: BTreeMap<String, String>,
    /// The patterns that no interface matches.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unmatched: Vec<String>,
    /// The frames of an interface that no limit sees; keyed by the interface's name.
    #[serde(default)]
    pub unseen: BTreeMap<String, String>,
    /// Why the secrets of DNS cookies differ from their file; `None`: they do not, or none are needed.
    #[serde(default)]
    pub secrets_error: Option<String>,
    /// Why this host makes no SYN cookies, though a limit answers with them; keyed by the limit's name.
    pub syn_cookies: BTreeMap<String, String>,
    /// Status of counting forwarded connections; `None`: they are not to be counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tracking: Option<TrackingStatus>,
    /// The fleet that it belongs to; `None`: it is alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fleet: Option<FleetBrief>,
}

/// The page.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PageStatus {
    /// Where it is.
    pub listen: ListenAddress,
    /// The names under which browsers may ask for it, besides `localhost` and addresses.
    pub hosts: Vec<String>,
}

/// The guard, which protects addresses that must not be banned.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct GuardStatus {
    /// The time at which it became able, or unable, to name protected addresses.
    pub since: Timestamp,
    /// Why it cannot name protected addresses, so that automatic bans are suspended; `None`: it can.
    pub error: Option<String>,
    /// The last time it could; `None`: never since the daemon started.
    pub answered_at: Option<Timestamp>,
    /// How many addresses it protected then, besides `never-ban`.
    pub protected: usize,
    /// Whether this machine records logins.
    pub sessions_recorded: bool,
}

/// One interface.
#[derive(Debug, Serialize, Deserialize)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a field of the document, and they do not exclude each other"
)]
pub struct InterfaceStatus {
    /// Its name.
    pub name: String,
    /// `native` or `generic`; `None`: it has never existed.
    pub mode: Option<String>,
    /// Whether the program is attached now; it is attached again when a vanished interface
    /// reappears.
    pub attached: bool,
    /// Its current name, if that has changed.
    pub renamed: Option<String>,
    /// Whether it is in another network namespace now.
    pub elsewhere: bool,
    /// Whether another interface, not limited yet, now has this name.
    pub replaced: bool,
    /// When the program was attached.
    pub since: Option<Timestamp>,
    /// Why native mode failed, if it was tried first.
    pub fell_back: Option<String>,
    /// Whether only a pattern selects it, so that it is forgotten when it vanishes.
    #[serde(default)]
    pub by_pattern: bool,
}

/// The policy in force.
#[derive(Debug, Serialize, Deserialize)]
pub struct PolicyStatus {
    /// The number of the policy, from 1, counted from the daemon's start or from the first pinned policy.
    pub generation: u64,
    /// When it was loaded.
    pub loaded_at: Timestamp,
    /// How many limits it has.
    pub limits: usize,
    /// How many overrides they have.
    pub overrides: usize,
    /// The verdict on malformed packets.
    pub malformed: Action,
}

/// The buckets.
#[derive(Debug, Serialize, Deserialize)]
pub struct BucketsStatus {
    /// Their store, its capacity, and the behaviour when it is full.
    #[serde(flatten)]
    pub settings: Buckets,
    /// Buckets in debt that the table evicted for lack of room; the hash map does not count them.
    pub lossy_evictions: u64,
}

/// How many addresses and ranges are banned.
#[derive(Debug, Serialize, Deserialize)]
pub struct BansStatus {
    /// The configured maximum.
    #[serde(flatten)]
    pub settings: Bans,
    /// How many IPv4 addresses and ranges are banned.
    pub ipv4: u32,
    /// How many IPv6 addresses and ranges are banned.
    pub ipv6: u32,
}

impl BansStatus {
    /// Returns whether there is no room for another ban unless a ban gives way.
    #[must_use]
    pub const fn is_full(&self) -> bool {
        self.ipv4.saturating_add(self.ipv6) >= self.settings.capacity
    }
}

/// The state file.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct StateStatus {
    /// Its path.
    pub file: PathBuf,
    /// When it was last saved, or found to need no saving; `None`: not since the daemon was started.
    pub saved_at: Option<Timestamp>,
    /// How many buckets were in debt when it was written last.
    pub buckets: u64,
    /// How many bans it has, including expired ones that are remembered.
    pub bans: u64,
    /// How many known sources it has.
    pub sources: u64,
    /// How often saving it has failed since the daemon was started.
    pub errors: u64,
    /// Why the last save failed; `None`: it succeeded.
    pub error: Option<String>,
}

/// The traffic of one limit.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct LimitStatus {
    /// Its mode.
    pub mode: Mode,
    /// Its strategy.
    pub strategy: String,
    /// The unit it counts; empty: an earlier version of the daemon does not report it.
    #[serde(default)]
    pub cost: String,
    /// The rate of a key without an override; `None`: such a key has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<Rate>,
    /// How many connections such a key may have open at once; `None`: the limit has no such number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connections: Option<u64>,
    /// Packets charged and passed.
    pub passed_packets: u64,
    /// Bytes of passed packets.
    pub passed_bytes: u64,
    /// Packets dropped by this limit.
    pub dropped_packets: u64,
    /// Bytes of dropped packets.
    pub dropped_bytes: u64,
    /// Packets that it would have dropped if it enforced.
    pub would_drop_packets: u64,
    /// Bytes of packets that it would have dropped.
    pub would_drop_bytes: u64,
    /// How many answers to dropped packets were sent, by kind; empty: it sends none.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub answers: BTreeMap<String, u64>,
    /// Its rate in force, if that is automatic.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub automatic: Option<AutomaticRate>,
    /// How many open connections it counts, of all keys together; `None`: it counts none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub open: Option<u64>,
    /// The clients waiting for it; `None`: it has no queue.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue: Option<QueueStatus>,
    /// The parts of its metrics' names in Traffic Server; `None`: it has none.
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
