//! A node's response about its fleet.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    path::PathBuf,
};

use limiter_policy::fleet::Fleet;
use serde::{Deserialize, Serialize};

/// The fleet of a daemon, as configured when the daemon started.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FleetBrief {
    /// The fleet's name.
    pub name: String,
    /// This node's name.
    pub node: String,
    /// The address of the store.
    pub store: String,
    /// The file that other nodes may replace; `None`: they may not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accept_policy: Option<String>,
    /// Its other settings, by their names in the configuration.
    #[serde(default)]
    pub settings: BTreeMap<String, String>,
}

impl From<&Fleet> for FleetBrief {
    fn from(fleet: &Fleet) -> Self {
        let file = |file: Option<&PathBuf>| {
            file.map_or_else(|| "none".to_owned(), |file| file.display().to_string())
        };
        let known_sources = if fleet.known_sources { "on" } else { "off" };
        let settings = [
            ("key-file", fleet.key_file.display().to_string()),
            ("password-file", file(fleet.password_file.as_ref())),
            ("ca-file", file(fleet.ca_file.as_ref())),
            ("known-sources", known_sources.to_owned()),
            ("nodes", fleet.nodes.to_string()),
        ];
        Self {
            name: fleet.name.to_string(),
            node: fleet.node.to_string(),
            store: fleet.store.to_string(),
            accept_policy: fleet.accept_policy.clone(),
            settings: settings
                .map(|(name, value)| (name.to_owned(), value))
                .into(),
        }
    }
}

impl FleetBrief {
    /// Formats it with the other settings that differ from those of `other`.
    #[must_use]
    pub fn beside(&self, other: Option<&Self>) -> String {
        let differ = |(name, value): &(&String, &String)| {
            other.is_some_and(|other| other.settings.get(*name) != Some(value))
        };
        let settings = self.settings.iter().filter(differ);
        let settings = settings.map(|(name, value)| format!(", {name} {value}"));
        format!("{self}{}", settings.collect::<String>())
    }
}

impl fmt::Display for FleetBrief {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "{}, node {}, {}",
            self.name, self.node, self.store
        )?;
        match &self.accept_policy {
            Some(file) => write!(formatter, ", accept-policy {file}"),
            None => Ok(()),
        }
    }
}

/// A node's knowledge of its fleet.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FleetStatus {
    /// The fleet and the node.
    #[serde(flatten)]
    pub fleet: FleetBrief,
    /// Whether the store is connected and was read completely.
    pub connected: bool,
    /// Why there is no connection; `None`: there is one, or it was not tried yet.
    pub error: Option<String>,
    /// Nanoseconds since the connection began or was lost, or since the start.
    pub since_ns: u64,
    /// The bans and liftings not yet sent to the store.
    pub unsent: u64,
    /// The known bans, including lifted ones.
    pub held: u64,
    /// The active bans of other nodes, by origin.
    pub bans: BTreeMap<String, u64>,
    /// The bans that are active on other nodes but refused here.
    pub refused_here: u64,
    /// The delay of the last update from another node, in nanoseconds, by both nodes' clocks; `None`: none
    /// came since the start.
    pub delay_ns: Option<u64>,
    /// The updates sent since the start.
    pub sent: u64,
    /// The updates from other nodes since the start that changed something.
    pub received: u64,
    /// The messages refused since the start, by reason.
    pub refused: BTreeMap<String, u64>,
    /// The policies of rollouts to this node since the start: `kept`, `refused`, `taken_back`.
    #[serde(default)]
    pub pushes: BTreeMap<String, u64>,
    /// The nodes with a heartbeat within a day, by name.
    pub nodes: BTreeMap<String, FleetNode>,
    /// This node's shares of shared limits, by the limit's name.
    pub shares: BTreeMap<String, FleetShare>,
    /// The number of nodes that share limits now, this one included; `None`: this node has no leases.
    pub sharing_nodes: Option<u64>,
    /// Why this node has no leases, or may lose them; `None`: no error so far.
    pub leases_error: Option<String>,
    /// The state of sharing known sources; `None`: this node or its version does not share them.
    #[serde(default)]
    pub sources: Option<FleetSources>,
}

/// A node's state of sharing known sources.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FleetSources {
    /// The sources with an entry of this node.
    pub proven: u64,
    /// The sources with changes not yet sent to the store.
    pub unsent: u64,
    /// The entries of other nodes about sources.
    pub received: u64,
    /// Why known sources are not shared now; `None`: they are.
    pub error: Option<String>,
}

/// A node's share of a shared limit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FleetShare {
    /// The share, in billionths of the whole; for a limit with many keys, the minimum share, of each key that is not
    /// active.
    pub share_billionths: u64,
    /// The demand as a share, at most the whole; 0 for a limit with many keys.
    pub wanted_billionths: u64,
    /// The number of active keys on this node; `None`: the limit has only one key.
    pub active: Option<u64>,
    /// The rate of the share, in tokens a second.
    pub rate: u64,
    /// The burst of the share, in tokens.
    pub burst: u64,
    /// Why leases began again; `None`: no recent error.
    pub error: Option<String>,
}

/// A node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FleetNode {
    /// The version of its limiter.
    pub version: String,
    /// The digest of its policy.
    pub policy: String,
    /// The age of its last heartbeat, in nanoseconds, by both nodes' clocks.
    pub ago_ns: u64,
    /// How long the oldest message that the node has not read and enforced has been in the stream, in
    /// nanoseconds, by the clock of the reporting node, to within ten seconds; 0: the node has read all.
    /// `None`: its version does not report it, or it has not read the store yet.
    #[serde(default)]
    pub lag_ns: Option<u64>,
}

/// The age of a heartbeat from which its node counts as silent, in nanoseconds: a minute.
const SILENT_NS: u64 = 60_000_000_000;

impl FleetStatus {
    /// Counts the silent nodes.
    #[must_use]
    pub fn silent(&self) -> usize {
        let nodes = self.nodes.values();
        nodes.filter(|node| node.ago_ns > SILENT_NS).count()
    }

    /// Counts the different policies among nodes that are not silent.
    #[must_use]
    pub fn policies(&self) -> usize {
        let nodes = self.nodes.values();
        let received = nodes.filter(|node| node.ago_ns <= SILENT_NS);
        let policies: BTreeSet<_> = received.map(|node| &node.policy).collect();
        policies.len()
    }

    /// This node's lag behind the stream, in nanoseconds; `None`: it has not read the store yet.
    #[must_use]
    pub fn lag_ns(&self) -> Option<u64> {
        self.nodes.get(&self.fleet.node)?.lag_ns
    }
}
