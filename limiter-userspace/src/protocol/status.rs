//! The status: what is enforced, where, and the state of the daemon.

use std::{collections::BTreeMap, net::SocketAddr, path::PathBuf};

use jiff::Timestamp;
use limiter_common::{
    counters::{LimitTraffic, Traffic},
    reason::Action,
};
use limiter_policy::{
    config::{Bans, Buckets, Offenders, Place},
    lists::ListStatus,
    policy::{FlatMetrics, Mode, Rate},
};
use serde::{Deserialize, Serialize};

use super::{
    connections::{ConnectionsStatus, QueueStatus, TrackingStatus},
    fleet::FleetBrief,
    reload::History,
    sieves::SieveBrief,
    standing::StandingStatus,
};

/// The status: what is enforced, where, and the counters.
#[derive(Debug, Serialize, Deserialize)]
pub struct Status {
    /// The interfaces.
    pub interfaces: Vec<InterfaceStatus>,
    /// The patterns of names whose interfaces are limited, as long as there are such.
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
    /// Where everything is pinned; `None`: it ends with the daemon.
    pub pinned: Option<PathBuf>,
    /// A lost pin of an object in force; `None`: all are there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lost_pin: Option<PathBuf>,
    /// The daemon; `None`: none is running, but what is pinned is enforced.
    pub daemon: Option<DaemonStatus>,
    /// Packets by reason, over all interfaces.
    pub reasons: BTreeMap<String, u64>,
    /// What each limit did.
    pub limits: BTreeMap<String, LimitStatus>,
    /// The lists.
    pub lists: Vec<ListStatus>,
    /// The sieves.
    pub sieves: Vec<SieveBrief>,
    /// What sources of each standing got; `None`: no limit uses standing.
    pub standing: Option<StandingStatus>,
    /// The connections that limits count; `None`: none limits them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connections: Option<ConnectionsStatus>,
    /// Why connections that the host began are limited like others, though they should be exempt;
    /// `None`: they are as configured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub own_connections_error: Option<String>,
    /// The outcomes of connections and QUIC flows whose names limits count by; `None`: no limit does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server_names: Option<ServerNamesStatus>,
    /// Why connections get no server names, though limits count by them; `None`: they do, or no limit does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server_names_error: Option<String>,
}

/// The connections whose server names limits count by.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerNamesStatus {
    /// Those for which the daemon read a name.
    pub named: u64,
    /// Those that have none, by the reason.
    pub nameless: BTreeMap<String, u64>,
    /// Segments that may have had first bytes of connections, and that the daemon did not read, by the reason.
    pub segments_lost: BTreeMap<String, u64>,
    /// QUIC flows.
    #[serde(default)]
    pub quic: QuicNamesStatus,
}

/// The QUIC flows whose server names limits count by.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct QuicNamesStatus {
    /// Those for which the daemon read a name.
    pub named: u64,
    /// Datagrams that gave none, by the reason. Another may have given it later.
    pub nameless: BTreeMap<String, u64>,
    /// Datagrams that may say a name, and that the daemon did not read, by the reason.
    pub datagrams_lost: BTreeMap<String, u64>,
}

/// The daemon.
#[derive(Debug, Serialize, Deserialize)]
pub struct DaemonStatus {
    /// Where metrics are served to Prometheus; `None`: nowhere.
    pub metrics: Option<SocketAddr>,
    /// The names under which clients may ask for them, besides its address and `localhost`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub metrics_hosts: Vec<String>,
    /// Where the page is; `None`: nowhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub page: Option<PageStatus>,
    /// The group whose members may look; `None`: only root may.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// The state file; `None`: there is none.
    pub state: Option<StateStatus>,
    /// The reloads of the configuration and their results.
    pub reloads: History,
    /// Whether the guard can tell whom not to ban.
    pub guard: GuardStatus,
    /// Why no limit answers refused packets, whatever its `deny`; `None`: they answer.
    pub silence: Option<String>,
    /// Why answers through an interface are lost or may be, by its name.
    pub lost_answers: BTreeMap<String, String>,
    /// Why the policy in force does not fit an interface as it is now, by its name.
    #[serde(default)]
    pub misfits: BTreeMap<String, String>,
    /// The patterns that no interface matches.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unmatched: Vec<String>,
    /// Which frames of an interface no limit sees, by its name.
    #[serde(default)]
    pub unseen: BTreeMap<String, String>,
    /// Why the secrets of DNS cookies are not those of their file; `None`: they are, or none are
    /// needed.
    #[serde(default)]
    pub secrets_error: Option<String>,
    /// Why this host does not make the SYN cookies that a limit answers with, by its name.
    pub syn_cookies: BTreeMap<String, String>,
    /// How connections are counted that this host forwards; `None`: they are not to be.
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
    pub listen: Place,
    /// The names under which browsers may ask for it, besides `localhost` and addresses.
    pub hosts: Vec<String>,
}

/// The guard, which protects addresses that must not be banned.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct GuardStatus {
    /// Since when it has been able, or unable, to tell whom not to ban.
    pub since: Timestamp,
    /// Why it cannot tell, so that nobody is banned automatically; `None`: it can.
    pub error: Option<String>,
    /// When it last could; `None`: never since the daemon was started.
    pub answered_at: Option<Timestamp>,
    /// How many addresses it protected then, without those of `never-ban`.
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
    /// Whether another interface, which is not limited yet, now has this name.
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
    /// The number of policies so far, from 1: since the daemon started, or since they were first
    /// pinned.
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
    /// Their store, its capacity, and what happens when it is full.
    #[serde(flatten)]
    pub settings: Buckets,
    /// Buckets in debt that the table forgot for lack of room; the hash map does not count them.
    pub lossy_evictions: u64,
}

/// How many addresses and ranges are banned.
#[derive(Debug, Serialize, Deserialize)]
pub struct BansStatus {
    /// The most there is room for.
    #[serde(flatten)]
    pub settings: Bans,
    /// How many IPv4 addresses and ranges are banned.
    pub ipv4: u32,
    /// How many IPv6 addresses and ranges are banned.
    pub ipv6: u32,
}

impl BansStatus {
    /// Returns whether no other address or range can be banned unless a ban gives way.
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

/// What one limit did to the packets it matched.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct LimitStatus {
    /// Its mode.
    pub mode: Mode,
    /// Its strategy.
    pub strategy: String,
    /// What it counts; empty: a daemon of an earlier version does not say.
    #[serde(default)]
    pub cost: String,
    /// The rate of an owner without an override; `None`: such an owner has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<Rate>,
    /// How many connections such an owner may have open at once; `None`: the limit does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connections: Option<u64>,
    /// Packets charged and passed.
    pub passed_packets: u64,
    /// Bytes of those.
    pub passed_bytes: u64,
    /// Packets dropped by this limit.
    pub dropped_packets: u64,
    /// Bytes of those.
    pub dropped_bytes: u64,
    /// Packets that it would have dropped if it enforced.
    pub would_drop_packets: u64,
    /// Bytes of those.
    pub would_drop_bytes: u64,
    /// How many answers to those that it dropped were sent, by kind; empty: it sends none.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub answers: BTreeMap<String, u64>,
    /// Its rate in force, if that is automatic.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub automatic: Option<AutomaticRate>,
    /// How many open connections it counts, of all owners together; `None`: it counts none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub open: Option<u64>,
    /// Who waits for it; `None`: nobody can.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue: Option<QueueStatus>,
    /// The parts of its metrics' names in Traffic Server; `None`: it has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metrics: Option<FlatMetrics>,
}

/// An automatic rate, in tokens a second.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct AutomaticRate {
    /// The rate in force.
    pub rate: u64,
    /// The lowest.
    pub floor: u64,
    /// The highest.
    pub ceiling: u64,
    /// The host's distress that the limit heard since it came in force or the daemon started, by
    /// kind.
    pub distress: Vec<DistressStatus>,
    /// Why the floor is in force; `None`: the rate is being found.
    pub error: Option<String>,
}

/// A distress of the host: it lost packets because nobody took them in time, or is about to.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct DistressStatus {
    /// Where: `receive-buffer`, `listen-queue`, `backlog` or `full-cpu`.
    pub kind: String,
    /// In how many intervals of a quarter of a second.
    pub intervals: u64,
    /// Nanoseconds since the last of them.
    pub ago_ns: u64,
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
