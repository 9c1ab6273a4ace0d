//! Policies that one node rolls out to its fleet.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// A rollout to begin.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RolloutQuery {
    /// The text of the file.
    pub text: String,
    /// How many nodes take it first, unless `canaries` names some.
    pub canary_count: usize,
    /// The names of the nodes that take it first.
    pub canaries: Vec<String>,
    /// How long canaries hold it before the other nodes take it, in nanoseconds.
    pub canary_for_ns: u64,
    /// How long all nodes wait for confirmation, in nanoseconds.
    pub confirm_ns: u64,
    /// Whether nodes only report the change.
    pub dry_run: bool,
    /// Whether to keep it without confirmation.
    pub yes: bool,
}

/// A rollout.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RolloutStatus {
    /// Its id on all nodes: the start in milliseconds since 1970, and the node.
    #[serde(rename = "push")]
    pub rollout: String,
    /// The SHA-256 of the file.
    pub sha256: String,
    /// The stage: `checking`, `canaries`, `others`, `waiting`, `keeping`, `going-back`; or the end: `checked`,
    /// `kept`, `kept-by-some`, `taken-back`. `requested`: another node leads it, and this node has sent it
    /// the request to keep it or roll it back.
    pub stage: String,
    /// Whether it is over.
    pub over: bool,
    /// Why it is rolled back; `None`: it is not.
    pub why: Option<String>,
    /// How much time is left to confirm it, in nanoseconds; `None`: it does not wait for confirmation.
    pub left_ns: Option<u64>,
    /// The nodes, by name.
    pub nodes: BTreeMap<String, RolloutNode>,
}

/// A node's part in a rollout.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RolloutNode {
    /// Whether it takes the file first.
    pub canary: bool,
    /// The node's stage: `silent`, `checking`, `takes-none`, `would`, `refuses`, `taking`, `holds`, `kept`,
    /// `back`.
    pub state: String,
    /// Why it refuses, or went back.
    pub why: Option<String>,
    /// The number of the policy there; `None`: it is not in force.
    pub generation: Option<u64>,
    /// The change on this node, as `limiter check --diff` prints it; `None`: the node has not reported it.
    pub diff: Option<String>,
}
