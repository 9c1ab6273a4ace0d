//! A node's answer about its fleet.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

/// The fleet that a daemon belongs to, as it was configured when the daemon started.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FleetBrief {
    /// The fleet's name.
    pub name: String,
    /// This node's name.
    pub node: String,
    /// The address of the store.
    pub store: String,
    /// The names of all nodes, in order; empty: they are not configured.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub members: Vec<String>,
    /// The names of those that take their place, in order; empty: the nodes stay.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub next_members: Vec<String>,
}

/// A node's knowledge of its fleet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FleetStatus {
    /// The fleet, and the node.
    #[serde(flatten)]
    pub fleet: FleetBrief,
    /// Whether the store is connected and all that it has is known.
    pub connected: bool,
    /// Why there is no connection; `None`: there is one, or it was not tried yet.
    pub error: Option<String>,
    /// Nanoseconds since the connection began or was lost, or since the start.
    pub since_ns: u64,
    /// The bans and liftings that the store has not heard of yet.
    pub unsent: u64,
    /// The bans that are known, with those that were lifted.
    pub held: u64,
    /// The bans of other nodes that hold, by origin.
    pub bans: BTreeMap<String, u64>,
    /// The bans that hold elsewhere and are refused here.
    pub refused_here: u64,
    /// How long what was last heard of another node was under way, in nanoseconds, by both nodes' clocks;
    /// `None`: nothing was heard since the start.
    pub delay_ns: Option<u64>,
    /// The notes that were sent since the start.
    pub sent: u64,
    /// The notes of other nodes that were heard since the start, and had something new.
    pub heard: u64,
    /// The notes that were refused since the start, by reason.
    pub refused: BTreeMap<String, u64>,
    /// The policies that the fleet pushed to this node since the start: `kept`, `refused`, `taken_back`.
    #[serde(default)]
    pub pushes: BTreeMap<String, u64>,
    /// The nodes that gave a sign of life within a day, by name.
    pub nodes: BTreeMap<String, FleetNode>,
    /// This node's shares of budgets that the fleet has in common, by the limit's name.
    pub shares: BTreeMap<String, FleetShare>,
    /// Why nodes do not hear of each other's need for budgets; `None`: they do.
    pub letters_error: Option<String>,
    /// The servers of the store that this node's letters about budgets go to, each with why some are lost there.
    #[serde(default)]
    pub letter_servers: BTreeMap<String, Option<String>>,
    /// Its part in sharing known sources; `None`: none, or its version shares none.
    #[serde(default)]
    pub sources: Option<FleetSources>,
}

/// A node's part in sharing known sources.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FleetSources {
    /// The sources that this node has proven, and says so.
    pub said: u64,
    /// Those of which the others have yet to hear.
    pub unsent: u64,
    /// The words of other nodes about sources that they have proven.
    pub heard: u64,
    /// Why nothing is shared now; `None`: it is.
    pub error: Option<String>,
}

/// A node's share of a budget that the fleet has in common.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FleetShare {
    /// Its share, in billionths of the whole; of a limit with many owners, that of each that is not hot.
    pub share_billionths: u64,
    /// The share with which it would refuse nobody, at most the whole; 0: it has many owners.
    pub wanted_billionths: u64,
    /// How many owners are hot on this node; `None`: it has only one.
    pub hot: Option<u64>,
    /// The tokens that come back in a second.
    pub rate: u64,
    /// The tokens that its bucket holds.
    pub burst: u64,
    /// Why it has only its floor; `None`: nothing is wrong.
    pub error: Option<String>,
}

/// A node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FleetNode {
    /// The version of its limiter.
    pub version: String,
    /// The digest of its policy.
    pub policy: String,
    /// Nanoseconds since its last sign of life, by both nodes' clocks.
    pub ago_ns: u64,
    /// For how long something has been in the store's stream that it has not read and put in force, in nanoseconds,
    /// by the clock of the node that says so, to within ten seconds; 0: it has all. `None`: its version does not
    /// say so, or it has not read the store yet.
    #[serde(default)]
    pub lag_ns: Option<u64>,
    /// A digest of `nodes` and `next-nodes` of its configuration; `None`: it has none, or its version does not say so.
    #[serde(default)]
    pub nodes: Option<String>,
}

/// How long a node gives no sign of life until it is silent, in nanoseconds: a minute.
const SILENT_NS: u64 = 60_000_000_000;

impl FleetStatus {
    /// Returns the nodes that are silent.
    #[must_use]
    pub fn silent(&self) -> usize {
        let nodes = self.nodes.values();
        nodes.filter(|node| node.ago_ns > SILENT_NS).count()
    }

    /// Returns how many different policies the nodes have that are not silent.
    #[must_use]
    pub fn policies(&self) -> usize {
        let nodes = self.nodes.values();
        let heard = nodes.filter(|node| node.ago_ns <= SILENT_NS);
        let policies: BTreeSet<_> = heard.map(|node| &node.policy).collect();
        policies.len()
    }

    /// Returns how long something waits that this node has not read, in nanoseconds; `None`: it has not read the store
    /// yet.
    #[must_use]
    pub fn lag_ns(&self) -> Option<u64> {
        self.nodes.get(&self.fleet.node)?.lag_ns
    }
}
